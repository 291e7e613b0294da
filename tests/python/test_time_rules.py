"""Tests of what tests say about time: all of ours, and small ones that are made up."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

import time_rules
from conftest import REPOSITORY

# What is in other folders measures, or runs for hours.
FOLDERS = ("conformance", "deploy", "fuzz", "gpu", "python", "simt", "testing", "unit", "verdict")


def sources(*endings: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "tests"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(name) for name in listed.stdout.split("\0") if name.endswith(endings)]
    # What begins with whole_ is for tests/deploy/run.
    paths = [path for path in paths if not path.name.startswith("whole_")]
    paths = [path for path in paths if len(path.parts) == 2 or path.parts[1] in FOLDERS]
    found = [path for path in paths if (REPOSITORY / path).exists()]
    assert len(found) > 5
    return found


def test_python_tests_say_what_depends_on_time() -> None:
    findings = []
    for path in sources(".py"):
        text = (REPOSITORY / path).read_text()
        findings += time_rules.read_python(str(path), text, REPOSITORY / path.parent)
    assert [str(each) for each in findings] == []


def test_cpp_tests_say_what_depends_on_time() -> None:
    labels: dict[str, list[str]] = {}
    for path in sources("CMakeLists.txt"):
        for source, filters in time_rules.labels_of((REPOSITORY / path).read_text()).items():
            name = os.path.normpath(path.parent / source)
            labels.setdefault(name, []).extend(filters)
    assert labels["tests/conformance/rpc_limits_test.cc"]
    findings = []
    for path in sources(".cc"):
        text = (REPOSITORY / path).read_text()
        findings += time_rules.read_cpp(str(path), text, labels.get(str(path), []))
    assert [str(each) for each in findings] == []


LABEL = "@pytest.mark.timing\n"


def found_in_python(text: str) -> list[str]:
    text = textwrap.dedent(text).lstrip()
    findings = time_rules.read_python("test_it.py", text, REPOSITORY / "tests/python")
    return [each.what for each in findings]


@pytest.mark.parametrize(
    "lines",
    [
        "begun = time.monotonic()\n    work()\n    assert time.monotonic() - begun < 2",
        "begun = time.monotonic()\n    work()\n    assert begun + 4.9 > time.monotonic()",
        "begun = time.perf_counter()\n    assert time.perf_counter() < begun + 1 + SLACK",
        "took = time.monotonic_ns() - begun\n    assert 0 < took <= LIMIT and is_good",
        "begun = datetime.datetime.now()\n    assert datetime.datetime.now() - begun < limit",
        "assert server.stats().idle_seconds < 0.5",
        "assert call.seconds == pytest.approx(1, rel=0.1)",
        "assert call.took_ms < 4000",
        "took_ns = time.monotonic_ns() - begun\n    assert took_ns < 4 * 10**9",
        "assert not time.monotonic() - begun > 1",
        "assert eventually(lambda: is_there(), 3)",
        "assert listens(path, seconds=0.5)",
        'assert report["mean_ms"] < 3',
    ],
)
def test_small_bounds_on_elapsed_time_want_a_reason(lines: str) -> None:
    constants = "SLACK = 2\nLIMIT = 10**9 * 0\n"
    test = f"def test_it():\n    {lines}\n"
    assert found_in_python(constants + test) == [time_rules.NEEDS_REASON]
    assert found_in_python(constants + LABEL + test) == [time_rules.NEEDS_REASON]
    with_reason = re.sub(r"^( *)(?=assert)", r"\1# time: it is so\n\1", test, flags=re.MULTILINE)
    assert with_reason != test
    assert found_in_python(constants + with_reason) == []


@pytest.mark.parametrize(
    "lines",
    [
        "begun = time.monotonic()\n    assert time.monotonic() - begun < 5",
        "begun = time.monotonic()\n    assert time.monotonic() < begun + 1 + SLACK",
        "begun = time.monotonic()\n    assert time.monotonic() - begun >= 1",
        "begun = time.monotonic()\n    assert time.monotonic() - begun < max(5, 4 * last)",
        "assert call.took_ms < 5000",
        "assert eventually(lambda: is_there())",
        "assert eventually(lambda: is_there(), 30)",
        "work(timeout=30)",
        "while is_busy():\n        time.sleep(0.01)",
    ],
)
def test_generous_bounds_want_none(lines: str) -> None:
    assert found_in_python(f"SLACK = 4.9\ndef test_it():\n    {lines}\n") == []


def test_who_has_a_clock_of_their_own_may_compare_it() -> None:
    text = """
        def test_it(monkeypatch):
            monkeypatch.setattr("time.monotonic", lambda: now)
            begun = time.monotonic()
            work(timeout=1)
            assert time.monotonic() - begun < 1
        """
    assert found_in_python(text) == []
    assert len(found_in_python(text.replace("time.monotonic\",", "time.other\","))) == 2


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("time.sleep(0.5)\n    assert is_there()", "sleeps before an assertion"),
        ("work(timeout=0.5)", "a limit of 0.5 s"),
        ("tensord.connect(address, lease=1)", "a limit of 1.0 s"),
        ("request.lease.FromSeconds(2)", "a lease of 2.0 s"),
        ("work().result(3)", "a limit of 3.0 s"),
        ("process.wait(timeout=4.5)", "a limit of 4.5 s"),
        ("start('--drain-timeout-seconds=0.5')", "a limit of 0.5 s"),
        ("threading.Thread(target=work).start()", "threads, processes or sockets"),
        ("ThreadPoolExecutor(2).submit(work)", "threads, processes or sockets"),
        ("concurrent.futures.ThreadPoolExecutor(2)", "threads, processes or sockets"),
        ("Thread(target=work).start()", "threads, processes or sockets"),
        ("server.process.send_signal(9)", "threads, processes or sockets"),
        ("subprocess.Popen(['true'])", "threads, processes or sockets"),
        ("socket.create_connection(address)", "threads, processes or sockets"),
        ("helper()", "threads, processes or sockets"),
    ],
)
def test_what_depends_on_time_is_labelled(line: str, what: str) -> None:
    helper = "def helper():\n    os.kill(1, 9)\n"
    test = f"def test_it():\n    {line}\n"
    assert found_in_python(helper + test) == [time_rules.NEEDS_LABEL.format(what)]
    assert found_in_python(helper + LABEL + test) == []
    high = "@pytest.mark.timing(high=True)\n"
    assert found_in_python(helper + high + test) == []
    assert found_in_python("pytestmark = pytest.mark.timing\n" + helper + test) == []
    other = "pytestmark = pytest.mark.skip\n"
    assert len(found_in_python(other + helper + test)) == 1
    reason = "    # time: nobody waits\n    "
    if what.startswith("threads") and line == "helper()":
        helper = helper.replace("    ", reason)
    assert found_in_python(helper + test.replace("    ", reason, 1)) == []


def test_a_comment_elsewhere_is_no_reason() -> None:
    text = """
        # time: of something else
        def test_it():
            work()
            # it is so

            work(timeout=1)
            # time: behind it
        """
    assert len(found_in_python(text)) == 1


def found_in_cpp(body: str, *labels: str, front: str = "") -> list[str]:
    text = f"{front}\nTEST(TransferTest, EndsSoon) {{\n  {body}\n}}\n"
    return [each.what for each in time_rules.read_cpp("it_test.cc", text, [*labels])]


@pytest.mark.parametrize(
    "lines",
    [
        "EXPECT_LT(absl::Now() - start, absl::Seconds(2));",
        "EXPECT_LE(core::SteadyNow(),\n            start + absl::Milliseconds(4900));",
        "const auto lived = Clock::steady_clock::now() - start;\n  EXPECT_LE(lived, std::chrono::seconds(2));",
        "EXPECT_LT(absl::Now() - start, kSoon);",
        "EXPECT_LT(absl::Now() - start, 2 * usual);",
        "EXPECT_TRUE(absl::Now() < start + absl::Seconds(1));",
        "const absl::Time end = absl::Now() + absl::Seconds(1);\n  ASSERT_LT(absl::Now(), end);",
        "EXPECT_GT(absl::Seconds(1), absl::Now() - start);",
        "EXPECT_GE(start + absl::Seconds(1), absl::Now());",
        "EXPECT_FALSE(absl::Now() - start > absl::Seconds(1));",
        "EXPECT_THAT(absl::Now() - start, testing::Lt(absl::Seconds(1)));",
        "const auto took = absl::Now() - start;\n  const double s = absl::ToDoubleSeconds(took);\n  EXPECT_LT(s, 1);",
        "EXPECT_LT(processor_seconds() - start, 1);",
        "EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.1);",
    ],
)
def test_small_bounds_in_cpp_want_a_reason(lines: str) -> None:
    front = "constexpr absl::Duration kSoon = absl::Seconds(1);"
    assert found_in_cpp(lines, front=front) == [time_rules.NEEDS_REASON]
    assert found_in_cpp(lines, "*", front=front) == [time_rules.NEEDS_REASON]
    with_reason = re.sub(r"(?=EXPECT_|ASSERT_)", "// time: it is so\n  ", lines)
    assert found_in_cpp(with_reason, front=front) == []


@pytest.mark.parametrize(
    "lines",
    [
        "EXPECT_LT(absl::Now() - start, absl::Seconds(5));",
        "EXPECT_GE(absl::Now() - start, absl::Seconds(1));",
        "const auto took = absl::Now() - start;\n  EXPECT_GE(took, absl::Seconds(1));",
        "EXPECT_TRUE(absl::Now() - start > absl::Seconds(1));",
        "EXPECT_LT(absl::Now() - start, kPatience);",
        "// EXPECT_LT(absl::Now() - start, absl::Seconds(1));",
        'Say("EXPECT_LT(absl::Now() - start, absl::Seconds(1))");',
        "EXPECT_EQ(options.drain_timeout, absl::Seconds(1));",
        "Wait({.deadline = absl::Seconds(30)});",
    ],
)
def test_other_lines_of_cpp_want_nothing(lines: str) -> None:
    front = "constexpr absl::Duration kPatience = absl::Seconds(20);"
    assert found_in_cpp(lines, front=front) == []


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("Wait({.deadline = absl::Milliseconds(100)});", "a limit of 0.1 s"),
        ("Open({.lease = absl::Seconds(1)});", "a limit of 1.0 s"),
        ("done.WaitForNotificationWithTimeout(absl::Seconds(2));", "a limit of 2.0 s"),
        ("absl::SleepFor(absl::Seconds(1));\n  EXPECT_TRUE(done);", "sleeps before an assertion"),
        ("std::thread other(work);\n  other.join();", "threads or processes"),
        ("server.Signal(SIGSTOP);", "threads or processes"),
    ],
)
def test_what_depends_on_time_in_cpp_is_labelled(lines: str, what: str) -> None:
    assert found_in_cpp(lines) == [time_rules.NEEDS_LABEL.format(what)]
    assert len(found_in_cpp(lines, "OtherTest.*")) == 1
    assert found_in_cpp(lines, "OtherTest.*:TransferTest.*") == []
    assert found_in_cpp("// time: nobody waits\n  " + lines) == []


def test_threads_of_classes_in_front_are_the_tests_that_use_them() -> None:
    front = """
        class Driver {
          void Finish() { std::thread([] {}).join(); }
        };
        class Fixture : public Test {
          Driver driver_;
        };
        """
    front = textwrap.dedent(front)
    assert found_in_cpp("Driver().Finish();", front=front) == [
        time_rules.NEEDS_LABEL.format("threads or processes of Driver")
    ]
    assert len(found_in_cpp("Fixture();", front=front)) == 1
    assert found_in_cpp("Fixture();", "*", front=front) == []
    assert found_in_cpp("Other();", front=front) == []
    with_reason = front.replace("  void", "  // time: nobody waits\n  void")
    assert found_in_cpp("Driver().Finish();", front=with_reason) == []


@pytest.mark.parametrize(
    ("filter_", "is_of"),
    [
        ("*", True),
        ("TransferTest.*", True),
        ("A.*:TransferTest.Ends*", True),
        ("All/TransferTest.EndsSoon/*", True),
        ("*/TransferTest.EndsSoon/Pool*", True),
        ("All/TransferTest.*/*", True),
        ("TransferTest.Begins*", False),
        ("*-TransferTest.*", False),
    ],
)
def test_filters_are_googletests(filter_: str, is_of: bool) -> None:
    assert time_rules.matches("TransferTest.EndsSoon", filter_) == is_of


def test_labels_are_read_of_cmake_files() -> None:
    text = """
        add_library(shared_tests OBJECT EXCLUDE_FROM_ALL one.cc two.cc)
        tensord_test(program_test
          SOURCES three.cc  # TIMING B.*
          UNTHREADED four.cc
          DEPS    shared_tests tensord::core
          TIMING  A.*:B.*
          TIMING_HIGH C.*
          THREADS)
        tensord_test(other_test SOURCES five.cc DEPS shared_tests)
        """
    labels = time_rules.labels_of(text)
    both = ["A.*:B.*", "C.*"]
    assert labels == {**dict.fromkeys(("one.cc", "two.cc", "three.cc", "four.cc"), both), "five.cc": []}

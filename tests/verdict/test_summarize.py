"""What made a run fail is told, whole, and nothing that failed counts as passed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import summarize
from results import Results


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    file = tmp_path / "skips.txt"
    file.write_text("# a comment\nunit  Device*.Is[01]  no device\n")
    monkeypatch.setattr(summarize, "SKIPS", file)
    return Results(tmp_path)


def told(
    results: Results, capsys: pytest.CaptureFixture[str], *suites: str
) -> tuple[int, str]:
    status = summarize.main(results.folder, "", list(suites or ("unit",)))
    return status, capsys.readouterr().out


TSAN = """\
==================
WARNING: ThreadSanitizer: data race (pid=17)
  Write of size 8 at 0x7b0400000000 by main thread:
    #0 tensord::Session::Close() server/session/session.cc:279 (server_test+0x1)

  Previous read of size 8 at 0x7b0400000000 by thread T1:
    #0 tensord::Session::Ends() server/session/session.cc:289 (server_test+0x2)

SUMMARY: ThreadSanitizer: data race server/session/session.cc:279 in Close
=================="""
ASAN = f"""\
=================================================================
==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010
READ of size 4 at 0x602000000010 thread T0
    #0 0x55 in Read<{"int, " * 100}int> core/base/layout.cc:12
0x602000000010 is located 0 bytes inside of 4-byte region

SUMMARY: AddressSanitizer: heap-use-after-free core/base/layout.cc:12 in Read"""
UBSAN = """\
core/base/layout.cc:7:11: runtime error: signed integer overflow
    #0 0x55 in Add core/base/layout.cc:7
    #1 0x56 in main"""


def test_all_that_passes_is_a_success(results: Results, capsys) -> None:
    results.ctest("unit", {"core_test": "run"})
    results.google(
        "unit", "core_test", {"LayoutTest.Merges": "", "LayoutTest.Splits": ""}
    )
    results.pytest("python", {"python.test_a.test_b[c.d-1]": ""})
    status, text = told(results, capsys, "unit", "python")
    assert status == 0
    assert text.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"
    assert "unit: 2 passed, 0 failed, 0 skipped\n" in text


@pytest.mark.parametrize("report", [TSAN, ASAN, UBSAN], ids=["tsan", "asan", "ubsan"])
def test_a_report_is_whole_and_before_other_failures(
    report: str, results, capsys
) -> None:
    noise = "\n".join(f"[       OK ] SessionTest.Number{i} (0 ms)" for i in range(1000))
    results.ctest("unit", {"http_test": "fail", "server_test": "fail"}, output={
        "server_test": f"{noise}\n{report}\n{noise}\n[  PASSED  ] 1000 tests.",
    })  # fmt: skip
    results.google(
        "unit", "http_test", {"HttpTest.Answers": "http_test.cc:3\nExpected: 200"}
    )
    results.google("unit", "server_test", {"SessionTest.Number1": ""})
    status, text = told(results, capsys)
    assert status == 1
    lines = [line.removeprefix("  ") for line in text.splitlines()]
    whole = report.splitlines()
    start = lines.index(
        next(line for line in whole if "Sanitizer" in line or ": runtime" in line)
    )
    length = len([line for line in whole if not line.startswith("====")])
    assert lines[start : start + length] == [
        line for line in whole if not line.startswith("====")
    ]
    assert start < lines.index("failed in unit: HttpTest.Answers (0.5 s)")
    assert "[       OK ]" not in text
    assert lines[-1] == "1 passed, 2 failed, 0 skipped"


def test_a_report_that_ends_a_program_says_in_which_test(results, capsys) -> None:
    first = "[ RUN      ] A.First\n[       OK ] A.First (0 ms)\n"
    for output, where in (
        (f"{first}[ RUN      ] A.Last\n{TSAN}\n", ["in A.Last:"]),
        (f"{first}[  PASSED  ] 1 test.\n{ASAN}\n", []),
    ):
        results.ctest("unit", {"server_test": "fail"}, output={"server_test": output})
        _, text = told(results, capsys)
        assert re.findall(r"in A\.\w+:", text) == where


def test_reports_are_not_run_again_to_be_flaky(results: Results, capsys) -> None:
    results.ctest("unit", {"server_test": "fail"}, output={"server_test": TSAN})
    results.google("unit", "server_test", {"SessionTest.Closes": "wrong"})
    results.again("unit", "SessionTest.Closes")
    status, text = told(results, capsys)
    assert status == 1
    assert "flaky" not in text
    assert text.splitlines()[-1] == "0 passed, 2 failed, 0 skipped"


def test_failures_have_their_messages(results: Results, capsys) -> None:
    results.ctest(
        "unit", {"core_test": "fail"}, output={"core_test": "[  FAILED  ] 1 test"}
    )
    results.google(
        "unit",
        "core_test",
        {"LayoutTest.Merges": "layout_test.cc:9\nExpected: 2\nActual: 3"},
    )
    traceback = "    def test_b():\n>       assert 1 == 2\nE       assert 1 == 2\n\ntests/python/test_a.py:7: AssertionError"
    results.pytest(
        "python", {"python.test_a.test_b": ("AssertionError: assert 1 == 2", traceback)}
    )
    status, text = told(results, capsys, "unit", "python")
    assert status == 1
    assert (
        "failed in unit: LayoutTest.Merges (0.5 s)\n"
        "  layout_test.cc:9\n  Expected: 2\n  Actual: 3\n"
        "failed in python: python.test_a.test_b (0.5 s)\n"
        "  AssertionError: assert 1 == 2\n  tests/python/test_a.py:7: AssertionError\n"
        "0 passed, 2 failed, 0 skipped\n"
    ) in text


def test_a_program_that_ends_in_a_test_says_which(results: Results, capsys) -> None:
    results.ctest("unit", {"core_test": "fail"}, output={
        "core_test": "[ RUN      ] LayoutTest.Merges\n[       OK ] LayoutTest.Merges\n"
                     "[ RUN      ] LayoutTest.Splits\nassertion `x` failed",
    })  # fmt: skip
    results.log(
        "test unit",
        "3/7 Test  #3: core_test ........***Exception: SegFault  1.20 sec\n",
    )
    status, text = told(results, capsys)
    assert status == 1
    assert (
        "failed in unit: core_test (0.5 s)\n  Exception: SegFault\n"
        "  [ RUN      ] LayoutTest.Splits\n  assertion `x` failed\n"
        "0 passed, 1 failed, 0 skipped\n"
    ) in text


@pytest.mark.parametrize("status", ["notrun", "disabled"])
def test_what_ctest_does_not_run_has_failed(
    status: str, results: Results, capsys
) -> None:
    results.ctest(
        "unit",
        {"core_test": status, "http_test": "run"},
        output={"core_test": "no file"},
    )
    result, text = told(results, capsys)
    assert result == 1
    assert (
        "failed in unit: core_test (0.5 s)\n  skipped, which tests/skips.txt does not"
        in text
    )
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_what_may_not_be_skipped_has_failed(results: Results, capsys) -> None:
    skips = {"DeviceTest.Is[01]": "no device", "DeviceTest.IsGone": "no device"}
    results.ctest("unit", {"core_test": "run"})
    results.google("unit", "core_test", {}, skipped=skips)
    status, text = told(results, capsys)
    assert status == 1
    assert "failed in unit: DeviceTest.IsGone (0.5 s)\n" in text
    assert text.splitlines()[-1] == "0 passed, 1 failed, 1 skipped"


def test_a_skip_for_another_reason_has_failed(results: Results, capsys) -> None:
    results.pytest("unit", {}, skipped={"DeviceTest.Is[01]": "no kernels"})
    status, text = told(results, capsys)
    assert status == 1
    assert "skipped, which tests/skips.txt does not allow: no kernels" in text


def test_what_passes_once_more_is_flaky(results: Results, capsys) -> None:
    results.pytest(
        "unit", {"a.test_b": ("late", ""), "a.test_c": ("wrong", ""), "a.test_d": ""}
    )
    results.again("unit", "a.test_b")
    status, text = told(results, capsys)
    assert status == 1
    assert "flaky in unit: a.test_b (failed, then passed)\n  late\n" in text
    assert "failed in unit: a.test_c (0.5 s)\n  wrong\n" in text
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped, 1 flaky"


def test_one_that_is_flaky_is_no_success(results: Results, capsys) -> None:
    results.pytest("unit", {"a.test_b": ("late", ""), "a.test_d": ""})
    results.again("unit", "a.test_b")
    status, text = told(results, capsys)
    assert status == 1
    assert text.splitlines()[-1] == "1 passed, 0 failed, 0 skipped, 1 flaky"


@pytest.mark.parametrize("text", [None, "<testsuites><testsu"])
def test_a_suite_without_results_has_failed(
    text: str | None, results: Results, capsys
) -> None:
    results.pytest("unit", {"a.test_b": ""})
    if text is not None:
        (results.folder / "python.xml").write_text(text)
    status, said = told(results, capsys, "unit", "python")
    assert status == 1
    assert "python: no results\n" in said
    assert said.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_nothing_at_all_is_no_success(results: Results, capsys) -> None:
    results.pytest("unit", {})
    assert told(results, capsys)[0] == 1


def test_a_phase_that_fails_is_named_with_what_the_compiler_said(
    results: Results, capsys
) -> None:
    results.pytest("unit", {"a.test_b": ""})
    results.phase("build dev", 12, "1",
        "[1/9] Building a.cc\n[2/9] Building b.cc\nFAILED: b.o \ng++ -c b.cc\n"
        "b.cc:3:1: error: 'x' was not declared\n[3/9] Building c.cc\n"
        + "c.cc: warning\n" * 100 + "ninja: build stopped: subcommand failed.\n")  # fmt: skip
    status, text = told(results, capsys)
    assert status == 1
    assert "      12 s  build dev (exit 1)\n" in text
    assert "failed phase: build dev (exit 1, 12 s)\n  FAILED: b.o" in text
    assert "error: 'x' was not declared" in text
    assert "c.cc" not in text
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_status_that_no_test_explains_is_a_failure(results: Results, capsys) -> None:
    results.pytest("unit", {"a.test_b": ""})
    results.phase("test unit", 3, "3", "INTERNALERROR> no space left")
    status, text = told(results, capsys)
    assert status == 1
    assert (
        "failed phase: test unit (exit 3, 3 s)\n  INTERNALERROR> no space left\n"
        in text
    )
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_status_that_tests_explain_counts_once(results: Results, capsys) -> None:
    results.pytest("unit", {"a.test_b": ("wrong", "")})
    results.phase("test unit", 3, "1", "")
    _, text = told(results, capsys)
    assert text.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_a_run_that_is_stopped_says_what_it_did(results: Results, capsys) -> None:
    results.pytest("unit", {"a.test_b": ""})
    results.phase("build asan", 4800, "stopped", "[8/9] Building slow.cc\n")
    status, text = told(results, capsys)
    assert status == 1
    assert "stopped in phase: build asan (after 4800 s)" in text
    assert "  [8/9] Building slow.cc\n" in text


def test_the_slowest_tests_and_the_machine_are_told(results: Results, capsys) -> None:
    results.pytest(
        "unit", {f"a.test_{i}": "" for i in range(30)}, seconds=iter(range(30))
    )
    (results.folder / "load").write_text("1.50 1.25 1.00 2/99 1234\n")
    _, text = told(results, capsys)
    slowest = text[: text.index("phases:")].splitlines()
    assert slowest[0] == "slowest 20 tests:" and len(slowest) == 21
    assert slowest[1].split() == ["29.0", "s", "unit:", "a.test_29"]
    assert "; load 1.50 1.25 1.00 in the beginning, " in text


def test_long_messages_keep_their_beginning_and_end(results: Results, capsys) -> None:
    message = "\n".join(["first", *["between"] * 500, "last"])
    results.ctest("unit", {"report": "fail"}, output={"report": message})
    _, text = told(results, capsys)
    assert "  first\n" in text and "  last\n" in text and text.count("between") < 100


def test_of_many_failures_all_are_named(results: Results, capsys) -> None:
    results.pytest("unit", {f"a.test_{i}": (f"wrong {i}\nmore", "") for i in range(40)})
    _, text = told(results, capsys)
    for i in range(40):
        assert f"failed in unit: a.test_{i} (0.5 s)\n  wrong {i}\n" in text
    assert text.count("  more\n") == summarize.WHOLE


def test_a_program_that_ends_well_and_tells_of_no_test_has_failed(
    results: Results, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.ctest("unit", dict.fromkeys(("exits", "breaks", "empty", "plain"), "run"))
    results.programs("unit", "exits", "breaks", "empty")
    results.google("unit", "empty", {})
    (results.folder / "unit/breaks.xml").write_text("<testsuites><testcase name=")
    status, text = told(results, capsys)
    assert status == 1
    assert text.splitlines()[-1] == "1 passed, 3 failed, 0 skipped"
    for each in ("exits", "breaks", "empty"):
        assert f"failed in unit: {each} (0.5 s)\n  it ended well, and" in text
    # With a filter, a program may have none that is wanted.
    monkeypatch.setenv("GTEST_FILTER", "A.*")
    _, text = told(results, capsys)
    assert text.splitlines()[-1] == "1 passed, 2 failed, 0 skipped"


def test_a_share_of_the_cases_is_told(results: Results, capsys) -> None:
    results.ctest("unit", {"core_test": "run"})
    properties = {"cases_offered": 200, "cases_taken": 50}
    results.google("unit", "core_test", {"KernelTest.Runs": ""}, properties=properties)
    _, text = told(results, capsys)
    assert (
        "unit: 1 passed, 0 failed, 0 skipped; kernels ran 50 of 200 cases, 25 %\n"
        in text
    )


def test_a_skip_may_be_one_program_s(results: Results, capsys) -> None:
    summarize.SKIPS.write_text("unit/cuda_*  KernelTest.Is  no kernels\n")
    for program, wanted in (("cuda_test_1", 0), ("cpu_test", 1)):
        results.ctest("unit", {program: "run"})
        results.google("unit", program, {"A.B": ""}, {"KernelTest.Is": "it has no kernels"})
        status, _ = told(results, capsys)
        assert status == wanted


def test_every_line_of_the_real_list_has_a_reason() -> None:
    assert all(len(skip.reason) > 5 for skip in summarize.skips_of())


def test_a_line_without_a_reason_is_refused(tmp_path: Path) -> None:
    (tmp_path / "skips.txt").write_text("dev  DeviceTest.Is\n")
    with pytest.raises(ValueError, match="reason"):
        summarize.skips_of(tmp_path / "skips.txt")

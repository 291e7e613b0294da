"""What tests/stress does to processes, and what it reads of their output."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import random
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from types import ModuleType

import pytest

from conftest import REPOSITORY
from waiting import eventually

pytestmark = pytest.mark.timing


@pytest.fixture(scope="module")
def stress() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("stress", str(REPOSITORY / "tests/stress"))
    spec = importlib.util.spec_from_loader("stress", loader)
    assert spec is not None
    module = sys.modules["stress"] = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


@pytest.fixture(scope="module")
def processes(stress: ModuleType) -> ModuleType:
    return sys.modules[stress.kill_all.__module__]


# Says what it has begun, one of which is in a session of its own.
PARENT = """
import subprocess, sys, time
children = [subprocess.Popen(["sleep", "600"], start_new_session=new) for new in (False, True)]
print(*(child.pid for child in children), flush=True)
time.sleep(600)
"""


@pytest.fixture
def run(processes: ModuleType):
    """A run of a parent and two children: its mark and their ids."""
    mark = f"STRESS_RUN={uuid.uuid4().hex}"
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env=os.environ | dict([mark.split("=")]),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ids = [process.pid, *map(int, process.stdout.readline().split())]
    assert len(ids) == 3
    yield mark, ids
    processes.kill_all(mark)
    process.wait()


def test_all_processes_of_a_run_are_found_and_ended(processes: ModuleType, run) -> None:
    mark, ids = run
    assert sorted(processes.processes_of(mark)) == sorted(ids)
    processes.kill_all(mark)
    assert processes.processes_of(mark) == {}
    for child in ids[1:]:
        assert eventually(lambda child=child: not Path(f"/proc/{child}/exe").exists())


def test_who_has_just_begun_is_known(processes: ModuleType) -> None:
    environment = os.environ | {"STRESS_RUN": "1"}
    for _ in range(200):
        with subprocess.Popen(["sleep", "600"], env=environment) as process:
            seen = processes.environment_of(Path(f"/proc/{process.pid}"))
            process.kill()
        assert b"STRESS_RUN=1" in seen


@pytest.mark.parametrize("stops_others", [False, True])
def test_who_stands_still_goes_on(
    processes: ModuleType, run, monkeypatch: pytest.MonkeyPatch, stops_others: bool
) -> None:
    mark, ids = run
    whole = (True, True, True)
    ones = set() if stops_others else {(False, True, False), (False, False, True)}
    seen = set()

    def stopped() -> tuple[bool, ...]:
        states = processes.processes_of(mark)
        return tuple(states[each] == "T" for each in ids)

    def look(seconds: float) -> None:
        if seconds != processes.STOP_SECONDS:  # it waits for who becomes another program
            return
        assert eventually(lambda: stopped() in {whole} | ones)
        seen.add(stopped())

    for seed in range(20):
        with monkeypatch.context() as patch:
            patch.setattr(processes, "time", type("Time", (), {"sleep": staticmethod(look)}))
            processes.stand_still(mark, ids[0], stops_others, random.Random(seed))
        assert eventually(lambda: not any(stopped()))
    # All of them, or one that the parent has begun.
    assert seen == {whole} | ones


def test_who_is_stopped_already_stays_so(
    processes: ModuleType, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, ids = run
    os.kill(ids[1], signal.SIGSTOP)
    assert eventually(lambda: processes.processes_of(mark)[ids[1]] == "T")
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.01)
    for seed in range(20):
        processes.stand_still(mark, ids[0], False, random.Random(seed))
        assert processes.processes_of(mark)[ids[1]] == "T"


OUTPUT = """\
[ RUN      ] OneTest.Passes
[       OK ] OneTest.Passes (1500 ms)
[ RUN      ] OneTest.Fails
it_test.cc:1: Failure
[  FAILED  ] OneTest.Fails (20 ms)
[ RUN      ] All/OneTest.FailsToo/Sum
[  FAILED  ] All/OneTest.FailsToo/Sum, where GetParam() = 3 (7 ms)
[ RUN      ] OneTest.Crashes
==1==ERROR: AddressSanitizer
"""


def test_a_program_tells_of_each_test_and_of_what_did_not_end(
    stress: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "output").write_text(OUTPUT)
    names = ["OneTest.Passes", "OneTest.Fails", "All/OneTest.FailsToo/Sum", "OneTest.Crashes"]
    tests = [stress.Test(name, "tsan: it_test", False) for name in names]
    run = stress.Program(Path("/build/tsan/bin/it_test"), tests, 0)
    assert [*run.outcomes(tmp_path, 1, 2.0)] == [
        ("OneTest.Passes", "passed", 1.5),
        ("OneTest.Fails", "failed", 0.02),
        ("All/OneTest.FailsToo/Sum", "failed", 0.007),
        ("OneTest.Crashes", "begun", 0.0),
    ]
    command, variables = run.command(tmp_path, 5)
    assert variables == {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
    assert f"--gtest_filter={':'.join(names)}" in command and "--gtest_shuffle" in command


@pytest.mark.parametrize("status, outcome", [(0, "passed"), (1, "failed"), (None, "begun")])
def test_a_program_that_is_one_test_tells_by_its_exit_code(
    stress: ModuleType, tmp_path: Path, status: int | None, outcome: str
) -> None:
    test = stress.Test("it_fuzz", "asan: it_fuzz", False)
    run = stress.WholeProgram(["/it_fuzz", "7"], test, 0)
    assert [*run.outcomes(tmp_path, status, 2.0)] == [("it_fuzz", outcome, 2.0)]
    command, variables = run.command(tmp_path, 5)
    assert command == ["/it_fuzz", "7"] and "UBSAN_OPTIONS" in variables


def test_what_ctest_lists_is_taken_once(stress: ModuleType) -> None:
    listed = [
        stress.Listed("asan", "it_fuzz", ["/asan/it_fuzz"], {}),
        stress.Listed("dev", "it_fuzz", ["/dev/it_fuzz"], {}),
        stress.Listed("dev", "smoke", ["python3", "smoke.py"], {}),
        stress.Listed("dev", "smoke_too", ["python3", "too.py"], {}),
    ]
    taken = [(command, test.row) for command, test in stress.find_whole_programs(listed)]
    assert taken == [
        (["/asan/it_fuzz"], "asan: it_fuzz"),
        (["python3", "smoke.py"], "dev: smoke"),
        (["python3", "too.py"], "dev: smoke_too"),
    ]
    assert stress.find_programs(listed) == {}


def test_what_fails_without_a_failed_test_counts(
    stress: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(stress, "ROOT", tmp_path)
    test = stress.Test("OneTest.Passes", "tsan: it_test", False)
    run = stress.Program(Path("/it_test"), [test], 0)
    (tmp_path / "output").write_text("".join(OUTPUT.splitlines(keepends=True)[:2]))
    whole = stress.Stress([run], tmp_path, [0], seed=1)
    assert not whole._count(run, tmp_path, 0, 2.0, False, tmp_path / "kept")
    assert (test.runs, test.failures, test.slowest_seconds) == (1, 0, 1.5)
    assert whole._count(run, tmp_path, 66, 2.0, False, tmp_path / "kept")  # TSan's
    assert (test.runs, test.failures) == (2, 1)
    stress.print_table([test], lambda test: 5)
    told = capsys.readouterr().out
    assert "failed: tsan: it_test ended with 66: kept" in told
    assert "ran 2 times of 5: OneTest.Passes" in told

"""The steps of tests/run: what fails or is stopped is told in the end, by its name."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(results: Path, text: str) -> str:
    results.joinpath("logs").mkdir()
    return (
        "set -euo pipefail\n"
        "source deploy/prepare.sh\n"
        f"results={results}\n"
        "source tests/verdict/run.sh\n"
        "passed() { echo PASSED; }\n" + text
    )


def ran(results: Path, text: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", script(results, text)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, re.sub(r"\b\d+ s\b", "N s", done.stdout)


SUITE = """
tests() {
  echo '<testsuite><testcase classname="a" name="b" time="1"/></testsuite>' >$results/unit.xml
}
"""


def test_all_steps_pass(tmp_path: Path) -> None:
    status, text = ran(
        tmp_path, SUITE + "step first true; suite unit tests; phase last true; finish"
    )
    assert status == 0
    assert text.splitlines()[-2:] == ["1 passed, 0 failed, 0 skipped", "PASSED"]
    phases = re.findall(r"^ +N s  (\w.*)$", text, re.MULTILINE)
    assert phases == ["first", "test unit", "last"]


def test_a_step_that_fails_ends_the_run(tmp_path: Path) -> None:
    status, text = ran(
        tmp_path,
        SUITE
        + "suite unit tests; bad() { fail 'no space'; echo ON; }; step 'build dev' bad; finish",
    )
    assert status == 1
    assert "ON" not in text.split()
    end = text[text.index("== result") :]
    assert "failed phase: build dev (exit 1, N s)\n" in end
    assert "  error: no space\n" in end
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_command_that_fails_ends_its_step_alone(tmp_path: Path) -> None:
    bad = "bad() { echo before; false; echo behind; }; "
    status, text = ran(
        tmp_path, SUITE + bad + "phase 'build native' bad; suite unit tests; finish"
    )
    assert status == 1
    assert "before\n" in text and "behind\n" not in text
    assert "failed phase: build native (exit 1, N s)\n" in text
    assert text.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_who_stays_behind_holds_up_nothing(tmp_path: Path) -> None:
    begun = time.monotonic()
    status, _ = ran(
        tmp_path,
        SUITE
        + "leaves() { sleep 50 & }; phase leaves leaves; suite unit tests; finish",
    )
    assert status == 0
    assert time.monotonic() - begun < 40


@pytest.mark.timing
def test_a_run_that_is_stopped_says_what_it_did(tmp_path: Path) -> None:
    text = SUITE + (
        "suite unit tests\n"
        "slow() { echo '[8/9] Building slow.cc'; touch $results/begun; sleep 50; }\n"
        "step 'build asan' slow; echo ON\n"
    )
    with subprocess.Popen(
        ["bash", "-c", script(tmp_path, text)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    ) as process:
        limit = time.monotonic() + 20
        while not (tmp_path / "begun").exists() and time.monotonic() < limit:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGTERM)
        said = process.communicate(timeout=40)[0]
    assert process.returncode == 1
    assert "ON\n" not in said
    end = said[said.index("== result") :]
    assert "stopped in phase: build asan (after " in end
    assert "  [8/9] Building slow.cc\n" in end
    assert end.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_other_arguments_are_refused() -> None:
    for arguments in (["--fast"], ["--all", "x"], ["--quick", "a", "b"], [""]):
        done = subprocess.run(
            [ROOT / "tests/run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 2
        assert done.stderr.startswith("wanted: tests/run [--all | --quick [PATTERN]]")

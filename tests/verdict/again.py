"""Runs what failed once more, alone, and writes down what passed then.

Usage: again.py FOLDER SUITE...

What a sanitizer has reported stays as it is: its reports are true whenever they come.
FOLDER/again.json has those that passed, as pairs of suite and test. No more than LIMIT tests
run again, and none begins after PATIENCE: where so many fail, it is not by chance.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cases import Case, cases_of, test_of

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
LIMIT = 50
PATIENCE = 600.0  # s


def main(folder: Path, suites: list[str]) -> None:
    failed = [
        case
        for suite in suites
        for case in cases_of(folder, suite) or ()
        if case.outcome == "failed" and not case.reports
    ]
    passed = []
    begun = time.monotonic()
    for case in failed[:LIMIT]:
        if time.monotonic() - begun > PATIENCE:
            break
        has_passed = passes_alone(case)
        outcome = "passed" if has_passed else "failed"
        print(f"{case.suite}: {case.name}: {outcome}", flush=True)
        if has_passed:
            passed.append([case.suite, case.name])
    (folder / "again.json").write_text(json.dumps(passed))


def passes_alone(case: Case) -> bool:
    return by_ctest(case) if case.program else by_pytest(case)


def by_ctest(case: Case) -> bool:
    # A shard of a program takes what its number says of all that is asked for: all are asked.
    name = re.sub(r"_\d+$", "", case.program)
    results = ROOT / "build" / case.suite / "results"
    environment = dict(os.environ)
    if not case.is_program:
        environment["GTEST_FILTER"] = case.name
        for file in results.glob("*.xml"):
            file.unlink()
    tests = f"^({re.escape(case.program)}|{re.escape(name)}(_[0-9]+)?)$"
    if case.is_program:
        tests = f"^{re.escape(case.program)}$"
    done = subprocess.run(
        ["ctest", "--preset", case.suite, "-R", tests, "--no-tests=error"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0 or case.is_program:
        return done.returncode == 0
    ran = [
        test_of(case.suite, file.stem, element)
        for file in results.glob("*.xml")
        for element in ElementTree.parse(file).iter("testcase")
    ]
    return any(test.name == case.name and test.outcome == "passed" for test in ran)


def by_pytest(case: Case) -> bool:
    test = node_of(case.name, TESTS)
    if test is None:
        return False
    native = "native" if case.suite == "native" else "grpcio"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test],
        cwd=ROOT,
        env=os.environ | {"TENSORD_IMPLEMENTATION": native},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0


def node_of(name: str, tests: Path) -> str | None:
    """What pytest calls the test: a file's path, and what is in it."""
    whole, bracket, parameters = name.partition("[")
    words = whole.split(".")
    for count in range(1, len(words) + 1):
        file = tests.joinpath(*words[:count]).with_suffix(".py")
        if file.is_file():
            return "::".join([str(file), *words[count:]]) + bracket + parameters
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

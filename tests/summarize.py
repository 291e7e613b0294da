"""Adds up JUnit result files and prints one closing line.

Usage: summarize.py FOLDER. Exits with 1 when a test failed or a suite is missing. Every
test that failed is named, with the end of what it printed: whoever has only the end of a
run's output can tell why it failed.

Tests that take a sample of their cases say so by the properties cases_offered and
cases_taken; a suite's share is printed.

FOLDER has a file of each suite, DEV.xml and so on. What CTest calls a test may be a
program of many: then DEV/PROGRAM.xml tells of each of them. A program that ends badly
without a failure in its file, or without a file, counts as one that failed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SUITES = ("dev", "asan", "tsan", "python", "native", "deploy")
LINES = 25  # of a failed test's output
WIDTH = 300  # of a line


def has_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def was_skipped(case: ElementTree.Element) -> bool:
    return (
        case.find("skipped") is not None
        or case.get("result") == "skipped"  # GoogleTest
        or case.get("status") in ("disabled", "notrun")
    )


def cases_of(path: Path) -> list[ElementTree.Element]:
    """The tests of one suite, those of programs one by one."""
    cases = []
    for case in ElementTree.parse(path).iter("testcase"):
        program = path.with_suffix("") / f"{case.get('name')}.xml"
        try:
            tests = list(ElementTree.parse(program).iter("testcase"))
        except (FileNotFoundError, ElementTree.ParseError):
            tests = [case]  # no program of many, or it ended before it wrote
        cases += tests
        if has_failed(case) and not any(map(has_failed, tests)):
            cases.append(case)
    return cases


def share_of(cases: list[ElementTree.Element]) -> str:
    """What part of the cases was taken, where tests say so."""
    counts = {"cases_offered": 0, "cases_taken": 0}
    for case in cases:
        for entry in case.iter("property"):
            if entry.get("name") in counts:
                counts[entry.get("name")] += int(entry.get("value"))
    offered, taken = counts.values()
    if taken == offered:
        return ""
    return f"; kernels ran {taken} of {offered} cases, {100 * taken / offered:.0f} %"


def text_of(case: ElementTree.Element) -> str:
    """What a failed test printed and what was wrong, each with its last lines only."""
    lines = []
    for part in ("system-out", "system-err", "failure", "error"):
        for element in case.iter(part):
            lines += (element.text or element.get("message") or "").splitlines()[-LINES:]
    return "\n".join("  " + line[:WIDTH] for line in lines)


def print_failures(suite: str, cases: list[ElementTree.Element]) -> None:
    for case in filter(has_failed, cases):
        name = case.get("name")
        if case.get("classname") not in (None, name):  # ctest repeats the name
            name = f"{case.get('classname')}.{name}"
        print(f"failed in {suite}: {name} ({case.get('time')} s)")
        print(text_of(case))


def main() -> int:
    folder = Path(sys.argv[1])
    totals = [0, 0, 0]
    suites = {
        suite: cases_of(folder / f"{suite}.xml")
        for suite in SUITES
        if (folder / f"{suite}.xml").exists()
    }
    for suite, cases in suites.items():
        print_failures(suite, cases)
    for suite, cases in suites.items():
        failed = sum(map(has_failed, cases))
        skipped = sum(map(was_skipped, cases))
        passed = len(cases) - failed - skipped
        print(f"{suite}: {passed} ok, {failed} not ok, {skipped} skipped{share_of(cases)}")
        totals = [total + n for total, n in zip(totals, (passed, failed, skipped))]
    missing = [suite for suite in SUITES if suite not in suites]
    for suite in missing:
        print(f"{suite}: no results")
    totals[1] += len(missing)
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())

"""Adds up JUnit result files and prints one closing line.

Usage: summarize.py FOLDER. Exits with 1 when a test failed or a suite is missing. Every
test that failed is named, with the end of what it printed: whoever has only the end of a
run's output can tell why it failed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SUITES = ("dev", "asan", "tsan", "python")
LINES = 25  # of a failed test's output
WIDTH = 300  # of a line


def count(path: Path) -> tuple[int, int, int]:
    """Tests that passed, failed and were skipped in one file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def text_of(case: ElementTree.Element) -> str:
    """What a failed test printed and what was wrong, each with its last lines only."""
    lines = []
    for part in ("system-out", "system-err", "failure", "error"):
        for element in case.iter(part):
            lines += (element.text or element.get("message") or "").splitlines()[-LINES:]
    return "\n".join("  " + line[:WIDTH] for line in lines)


def print_failures(suite: str, path: Path) -> None:
    for case in ElementTree.parse(path).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            name = case.get("name")
            if case.get("classname") not in (None, name):  # ctest repeats the name
                name = f"{case.get('classname')}.{name}"
            print(f"failed in {suite}: {name} ({case.get('time')} s)")
            print(text_of(case))


def main() -> int:
    folder = Path(sys.argv[1])
    totals = [0, 0, 0]
    missing = 0
    for suite in SUITES:
        if (folder / f"{suite}.xml").exists():
            print_failures(suite, folder / f"{suite}.xml")
    for suite in SUITES:
        path = folder / f"{suite}.xml"
        if not path.exists():
            print(f"{suite}: no results")
            missing += 1
            continue
        counts = count(path)
        print(f"{suite}: {counts[0]} ok, {counts[1]} not ok, {counts[2]} skipped")
        totals = [total + n for total, n in zip(totals, counts)]
    totals[1] += missing
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())

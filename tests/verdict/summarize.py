"""Adds up what a run has found, and prints it, what failed last.

Usage: summarize.py FOLDER "WHAT RAN" SUITE...

Exits with 1 when a test failed, if only at first, or was skipped and may not be, when a suite
has no results, or a phase failed. Each of them is named with what made it fail: whoever has
only the end of a run's output can tell why. FOLDER has what cases.py, again.py and phases.py
tell of.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

from cases import Case, cases_of
from phases import Phase, cause_of, phases_of
from skips import SKIPS, Skip, may_skip, skips_of

SLOWEST = 20
WHOLE = 25  # tests that failed; of more there is one line each
HEAD, TAIL = 40, 60  # lines of a message
WIDTH = 300  # of a line, but for reports, whose lines end with where it was


def judge(case: Case, again: set[tuple[str, str]], skips: list[Skip]) -> None:
    """Says what the test counts as."""
    is_flaky = case.outcome == "failed" and (case.suite, case.name) in again
    if is_flaky and not case.reports:
        case.outcome = "flaky"
    is_unwanted = case.outcome == "skipped" and not may_skip(
        skips, case.suite, case.program, case.name, case.message
    )
    if is_unwanted:
        case.outcome = "failed"
        case.message = f"skipped, which tests/skips.txt does not allow: {case.message}"


def share_of(cases: list[Case]) -> str:
    """What part of the cases was taken, where tests say so."""
    counts = sum((case.counts for case in cases), Counter[str]())
    offered, taken = counts["cases_offered"], counts["cases_taken"]
    if taken == offered:
        return ""
    return f"; kernels ran {taken} of {offered} cases, {100 * taken / offered:.0f} %"


def indented(text: str, width: int | None = WIDTH) -> str:
    return "\n".join("  " + line[:width] for line in text.splitlines())


def shortened(text: str) -> str:
    """The text without its middle, where it is long."""
    lines = text.splitlines()
    left_out = len(lines) - HEAD - TAIL
    if left_out > 0:
        lines[HEAD:-TAIL] = [f"... {left_out} lines ..."]
    return "\n".join(lines)


def print_slowest(cases: list[Case]) -> None:
    slowest = sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]
    print(f"slowest {len(slowest)} tests:")
    for case in slowest:
        print(f"  {case.seconds:6.1f} s  {case.suite}: {case.name}")


def print_phases(phases: list[Phase]) -> None:
    print("phases:")
    for phase in phases:
        end = "" if phase.status == "0" else f" ({ending(phase)})"
        print(f"  {phase.seconds:6} s  {phase.name}{end}")


def ending(phase: Phase) -> str:
    return "stopped" if phase.status == "stopped" else f"exit {phase.status}"


def print_machine(folder: Path) -> None:
    models = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    before = folder / "load"
    begun = before.read_text().split()[:3] if before.exists() else ["unknown"]
    now = Path("/proc/loadavg").read_text().split()[:3]
    print(
        f"machine: {os.cpu_count()} CPUs, {models[0] if models else 'unknown'}; "
        f"load {' '.join(begun)} in the beginning, {' '.join(now)} in the end"
    )


def print_cases(cases: list[Case]) -> None:
    """Those that failed; what sanitizers report in front of all."""
    told: set[str] = set()
    order = sorted(cases, key=lambda case: not (case.reports and case.is_program))
    for count, case in enumerate(order):
        if case.outcome == "flaky":
            print(f"flaky in {case.suite}: {case.name} (failed, then passed)")
        else:
            print(f"failed in {case.suite}: {case.name} ({case.seconds:.1f} s)")
        reports = [report for report in case.reports if report not in told]
        if case.is_program and reports:
            told |= set(reports)
            print(indented("\n".join([*running_in(case), *reports]), None))
        elif count < WHOLE:
            print(indented(shortened(case.message)))
        else:
            print(indented((case.message.strip().splitlines() or [""])[0]))


def running_in(case: Case) -> list[str]:
    """What says which test had begun and not ended, if one had."""
    begun = re.match(r"\[ RUN +\] (\S+)", case.message)
    if not begun or re.search(r"^\[ +(OK|FAILED) +\] ", case.message, re.MULTILINE):
        return []
    return [f"in {begun[1]}:"]


def print_phase(phase: Phase) -> None:
    if phase.status == "stopped":
        print(
            f"stopped in phase: {phase.name} (after {phase.seconds} s); it said last:"
        )
    else:
        print(f"failed phase: {phase.name} ({ending(phase)}, {phase.seconds} s)")
    print(indented(shortened(cause_of(phase))))


def passed_again(folder: Path) -> set[tuple[str, str]]:
    file = folder / "again.json"
    pairs = json.loads(file.read_text()) if file.exists() else []
    return {(suite, name) for suite, name in pairs}


def unexplained(phases: list[Phase], cases: list[Case]) -> list[Phase]:
    """The phases that failed, but for those of suites whose tests say why."""
    explained = {f"test {case.suite}" for case in cases if is_bad(case)}
    return [
        phase
        for phase in phases
        if phase.status != "0"
        and (phase.status == "stopped" or phase.name not in explained)
    ]


def print_suites(suites: dict[str, list[Case] | None]) -> Counter[str]:
    """A line of each; returns how many tests ended how. A suite without results failed."""
    totals = Counter[str]()
    for name, cases in suites.items():
        if cases is None:
            totals["failed"] += 1
            print(f"{name}: no results")
            continue
        counts = Counter(case.outcome for case in cases)
        totals += counts
        print(f"{name}: {counted(counts)}{share_of(cases)}")
    return totals


def main(folder: Path, what: str, names: list[str]) -> int:
    skips, again = skips_of(SKIPS), passed_again(folder)
    suites = {name: cases_of(folder, name) for name in names}
    cases = [case for found in suites.values() for case in found or ()]
    for case in cases:
        judge(case, again, skips)
    phases = phases_of(folder)
    print_slowest(cases)
    print_phases(phases)
    print_machine(folder)
    totals = print_suites(suites)
    for phase in unexplained(phases, cases):
        totals["failed"] += 1
        print_phase(phase)
    print_cases([case for case in cases if is_bad(case)])
    if what:
        print(what)
    print(counted(totals))
    return 1 if totals["failed"] or totals["flaky"] or not totals["passed"] else 0


def is_bad(case: Case) -> bool:
    return case.outcome in ("failed", "flaky")


def counted(counts: Counter[str]) -> str:
    said = f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
    return said + (f", {counts['flaky']} flaky" if counts["flaky"] else "")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))

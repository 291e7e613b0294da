"""How tests ended, as JUnit files and what is said beside them tell.

FOLDER has a file of each suite, dev.xml and so on. What CTest calls a test may be a program
of many, as dev/ctest.json says: then dev/PROGRAM.xml tells of each of them. A program that ends
badly counts as one that failed, beside its tests, unless one of these tells why; so does one
that tells of none.
"""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reports import reports_in

# What CTest says of a test that did not end by itself: "***Timeout", "***Exception: SegFault".
ENDED = re.compile(r"Test +#\d+: (\S+) \.*\*\*\*(.+?) +[\d.]+ sec")


@dataclass
class Case:
    """One test."""

    suite: str
    name: str
    outcome: str  # "passed", "failed", "skipped" or "flaky"
    seconds: float
    program: str = ""  # what CTest calls the test that it is of
    message: str = ""  # why it failed, or was skipped
    reports: list[str] = field(default_factory=list)  # sanitizers', of its program
    counts: Counter[str] = field(default_factory=Counter)  # its properties

    @property
    def is_program(self) -> bool:
        return self.program == self.name


def cases_of(folder: Path, suite: str) -> list[Case] | None:
    """The tests of a suite, those of programs one by one; None where it has no results."""
    try:
        root = ElementTree.parse(folder / f"{suite}.xml").getroot()
    except (FileNotFoundError, ElementTree.ParseError):
        return None
    endings = endings_in(folder / "logs" / f"test {suite}.log")
    programs = programs_in(folder / suite / "ctest.json")
    cases = []
    for element in root.iter("testcase"):
        if element.get("status") is None:  # not CTest's
            cases.append(test_of(suite, "", element))
        else:
            cases += program_of(folder, suite, element, endings, programs)
    return cases


def programs_in(file: Path) -> set[str]:
    """CTest's tests that are programs of many, of its `--show-only=json-v1`."""
    tests = json.loads(file.read_text())["tests"] if file.exists() else []
    return {
        each["name"]
        for each in tests
        if any("--gtest_output" in word for word in each.get("command", ()))
    }


def endings_in(log: Path) -> dict[str, str]:
    """How CTest's tests ended that did so badly."""
    found = ENDED.findall(log.read_text(errors="replace")) if log.exists() else []
    return {name: ending for name, ending in found if ending != "Failed"}


def program_of(
    folder: Path,
    suite: str,
    element: ElementTree.Element,
    endings: dict[str, str],
    programs: set[str],
) -> Iterator[Case]:
    """One of CTest's tests, or the tests of which it is a program."""
    program = element.get("name", "")
    output = element.findtext("system-out") or ""
    has_failed = element.get("status") == "fail"
    reports = reports_in(output) if has_failed else []
    try:
        root = ElementTree.parse(folder / suite / f"{program}.xml")
        tests = [test_of(suite, program, each) for each in root.iter("testcase")]
    except (FileNotFoundError, ElementTree.ParseError):
        tests = None  # no program of many, or it ended before it wrote
    for test in tests or ():
        test.reports = reports
        yield test
    is_silent = not tests and program in programs and element.get("status") == "run"
    if is_silent and tests is not None and "GTEST_FILTER" in os.environ:
        return  # It has none of those that are wanted.
    if tests is not None and not has_failed and not is_silent:
        return
    if any(test.outcome == "failed" for test in tests or ()) and not reports:
        return
    case = Case(suite, program, "passed", seconds_of(element), program, reports=reports)
    if has_failed:
        case.outcome = "failed"
        case.message = "\n".join(
            filter(None, (endings.get(program, ""), cause_in(output)))
        )
    elif is_silent:
        case.outcome = "failed"
        case.message = f"it ended well, and told of no test\n{cause_in(output)}"
    elif element.get("status") != "run":  # "notrun" or "disabled"
        skipped = element.find("skipped")
        case.outcome = "skipped"
        case.message = output if skipped is None else skipped.get("message", "")
    yield case


def test_of(suite: str, program: str, element: ElementTree.Element) -> Case:
    """A test of GoogleTest's or pytest's."""
    name = ".".join(filter(None, (element.get("classname"), element.get("name"))))
    case = Case(suite, name, "passed", seconds_of(element), program)
    failures = [each for tag in ("failure", "error") for each in element.iter(tag)]
    skipped = element.find("skipped")
    if failures:
        case.outcome = "failed"
        case.message = "\n".join(map(message_of, failures))
    elif skipped is not None:
        case.outcome = "skipped"
        case.message = skipped.get("message", "")
    elif element.get("status") == "notrun":  # GoogleTest's DISABLED_
        case.outcome = "skipped"
        case.message = "it is disabled"
    for entry in element.iter("property"):
        if entry.get("name") in ("cases_offered", "cases_taken"):
            case.counts[entry.get("name", "")] += int(entry.get("value", "0"))
    return case


def seconds_of(element: ElementTree.Element) -> float:
    return float(element.get("time") or 0)


def message_of(failure: ElementTree.Element) -> str:
    """GoogleTest's is whole; pytest's is what was asserted, and the lines that led to it."""
    message, text = failure.get("message", ""), failure.text or ""
    places = re.findall(r"^\S+\.py:\d+: .*$", text, re.MULTILINE)
    if places and message:
        return "\n".join([message, *places])
    return text.strip() or message


def cause_in(output: str) -> str:
    """What a program of GoogleTest's printed since its last test began; of others, all."""
    begun = output.rfind("[ RUN      ]")
    return output if begun < 0 else output[begun:]

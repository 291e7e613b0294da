"""Made-up results of a run, for tests."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path


class Results:
    """A folder of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "logs").mkdir()

    def ctest(
        self, suite: str, tests: dict[str, str], output: dict[str, str] | None = None
    ) -> None:
        """CTest's file: each test with its status."""
        root = ElementTree.Element("testsuite")
        for name, status in tests.items():
            case = ElementTree.SubElement(root, "testcase", name=name, classname=name)
            case.attrib |= {"time": "0.5", "status": status}
            if status == "fail":
                ElementTree.SubElement(case, "failure", message="")
            ElementTree.SubElement(case, "system-out").text = (output or {}).get(
                name, ""
            )
        self._write(f"{suite}.xml", root)

    def google(
        self,
        suite: str,
        program: str,
        tests: dict[str, str],
        skipped: dict[str, str] | None = None,
        properties: dict[str, int] | None = None,
    ) -> None:
        """GoogleTest's file: each test with what failed, or ""."""
        root = ElementTree.Element("testsuites")
        for name, message in (tests | (skipped or {})).items():
            suite_name, _, test = name.partition(".")
            case = ElementTree.SubElement(
                root, "testcase", name=test, classname=suite_name
            )
            is_skipped = name in (skipped or {})
            case.attrib |= {"time": "0.5", "status": "run"}
            case.attrib |= {"result": "skipped" if is_skipped else "completed"}
            if message:
                tag = "skipped" if is_skipped else "failure"
                ElementTree.SubElement(case, tag, message=message).text = message
            entries = ElementTree.SubElement(case, "properties")
            for key, value in (properties or {}).items():
                ElementTree.SubElement(entries, "property", name=key, value=str(value))
        self._write(f"{suite}/{program}.xml", root)

    def programs(self, suite: str, *programs: str) -> None:
        """What CTest says of programs of many tests."""
        tests = [
            {"name": each, "command": [each, f"--gtest_output=xml:{each}.xml"]}
            for each in programs
        ]
        (self.folder / suite).mkdir(exist_ok=True)
        (self.folder / suite / "ctest.json").write_text(json.dumps({"tests": tests}))

    def pytest(
        self,
        suite: str,
        tests: dict[str, str | tuple[str, str]],
        skipped: dict[str, str] | None = None,
        seconds: Iterator[float] | None = None,
    ) -> None:
        """pytest's file: each test with message and traceback, or ""."""
        root = ElementTree.SubElement(ElementTree.Element("testsuites"), "testsuite")
        for name, failure in (tests | dict.fromkeys(skipped or {}, "")).items():
            whole, bracket, parameters = name.partition("[")
            place, _, test = whole.rpartition(".")
            case = ElementTree.SubElement(root, "testcase", classname=place)
            case.attrib |= {"name": test + bracket + parameters}
            case.attrib |= {"time": str(next(seconds)) if seconds else "0.5"}
            if failure:
                ElementTree.SubElement(case, "failure", message=failure[0]).text = (
                    failure[1]
                )
            elif name in (skipped or {}):
                ElementTree.SubElement(case, "skipped", message=(skipped or {})[name])
        self._write(f"{suite}.xml", root)

    def again(self, suite: str, *tests: str) -> None:
        """What passed once more."""
        passed = [[suite, test] for test in tests]
        (self.folder / "again.json").write_text(json.dumps(passed))

    def phase(self, name: str, seconds: int, status: str, log: str) -> None:
        with (self.folder / "phases").open("a") as file:
            file.write(f"{seconds}\t{status}\t{name}\n")
        self.log(name, log)

    def log(self, name: str, text: str) -> None:
        (self.folder / "logs" / f"{name}.log").write_text(text)

    def _write(self, name: str, root: ElementTree.Element) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        ElementTree.ElementTree(root).write(self.folder / name)

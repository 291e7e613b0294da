"""Chooses what tests/run --quick builds and runs.

    select_tests.py targets BUILD PATTERN           prints what ninja is to build
    select_tests.py tests BUILD FOLDER [PATTERN]    writes into FOLDER what is to run

BUILD is configured, and has the answer to a query of CMake's file API (codemodel-v2).

With PATTERN these are the tests with PATTERN in their names: of CTest, of GoogleTest
("Suite.Name") and of pytest ("python/test_file.py::test_name"). Without one, what a change
touches: files that differ from the last commit, or if none does, those of that commit.
It touches

 * a program of C++ tests, if one of its sources or headers changed, or of a library in it,
   or the CMake file of their folder or of one above;
 * a file of Python tests, if it changed itself;
 * all of tests/python, if something else there changed, in client/python, or in the server,
   tensorctl or tensord-load;
 * all of tests/deploy likewise, or if something in deploy/ changed; and of tests/verdict, if
   tests/run or its steps did;
 * the tests that read documents, sources or tests, if such a one changed.

FOLDER/ctest has names of CTest's tests, as a regular expression, and FOLDER/filter which of
their tests, for GoogleTest; FOLDER/python, deploy and verdict have arguments of pytest. What
has nothing to run is not there. FOLDER/what says it all in a line.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("verdict", "python", "deploy")  # of tests, with tests of pytest
READS_DOCUMENTS = ("tests/python/test_documents.py", "tests/python/test_shown_code.py")
READERS = {  # Python's tests that read files, by those
    r".*\.md": READS_DOCUMENTS,
    r"tests/.*(\.py|\.cc|CMakeLists\.txt)": ("tests/python/test_time_rules.py",),
    r"tests/(stress|testing/stress_\w+\.py)": ("tests/python/test_stress.py",),
}
STARTED = ("tensord", "tensorctl", "tensord-load")  # by Python's tests
NATIVE = ("client/python/native/", "client/cpp/")  # of which Python's native core is built
READS_SOURCES = "core_test"  # the tests of includes
SOURCES = (".cc", ".h", ".cu", ".cuh")
TEST = re.compile(
    r"\b\w*TEST\w*\(\s*(\w+),\s*(\w+)"
)  # TEST_F(Suite, Name), INSTANTIATE_..(Prefix, Suite


class Target(NamedTuple):
    """What CMake builds."""

    name: str
    kind: str
    folder: str  # of the repository
    sources: set[str]  # paths in the repository
    needs: set[str]  # names of targets


class Programs:
    """What a build folder makes, of which files."""

    def __init__(self, build: Path) -> None:
        self.build = build
        replies = build / ".cmake/api/v1/reply"
        index = json.loads(max(replies.glob("index-*.json")).read_text())
        model = json.loads(
            (replies / index["reply"]["codemodel-v2"]["jsonFile"]).read_text()
        )
        self.targets = {}
        for entry in model["configurations"][0]["targets"]:
            described = json.loads((replies / entry["jsonFile"]).read_text())
            self.targets[entry["name"]] = Target(
                entry["name"],
                described["type"],
                described["paths"]["source"],
                sources_of([each["path"] for each in described.get("sources", ())]),
                {
                    each["id"].split("::@")[0]
                    for each in described.get("dependencies", ())
                },
            )

    @cache
    def parts(self, name: str) -> set[str]:
        """The target, and what it needs, and that, and so on."""
        found, open_names = set[str](), {name} & set(self.targets)
        while open_names:
            found |= open_names
            needed = set[str]().union(
                *(self.targets[each].needs for each in open_names)
            )
            open_names = (needed & set(self.targets)) - found
        return found

    @cache
    def tests(self) -> dict[str, str]:
        """CTest's tests, each with its program: there may be several of one, or none."""
        programs = {}
        for test in self.shown():
            name = test["name"]
            whole = re.sub(r"_\d+$", "", name)
            programs[name] = next(
                (each for each in (name, whole) if each in self.targets), ""
            )
        return programs

    def shown(self) -> list[dict[str, Any]]:
        shown = said("ctest", "--test-dir", self.build, "--show-only=json-v1")
        tests: list[dict[str, Any]] = json.loads(shown)["tests"]
        return tests

    def google_tests(self) -> dict[str, list[str]]:
        """The tests in CTest's that are GoogleTest's programs and are built."""
        found = {}
        for test in self.shown():
            program, *arguments = test.get("command", ("",))
            if (
                arguments
                and arguments[0].startswith("--gtest_output")
                and Path(program).exists()
            ):
                found[test["name"]] = listed(said(program, "--gtest_list_tests"))
        return found

    def of_files(self, changed: Iterable[str]) -> set[str]:
        """The targets that are compiled of one of the files."""
        changed = set(changed)
        made_by = [
            os.path.dirname(file)
            for file in changed
            if file.endswith(("CMakeLists.txt", ".cmake"))
        ]
        found = {
            name
            for name, each in self.targets.items()
            if each.sources & changed
            or any(is_within(each.folder, folder) for folder in made_by)
        }
        return found | (self.of_headers(changed) & set(self.targets))

    def of_headers(self, changed: set[str]) -> set[str]:
        """The same, of what their objects include, as ninja keeps it."""
        found = set[str]()
        target = ""
        files = {str(ROOT / file) for file in changed}
        for line in said("ninja", "-C", self.build, "-t", "deps").splitlines():
            if line.startswith("    "):  # a file that the object is made of
                path = os.path.normpath(self.build / line.strip())
                if target and path in files:
                    found.add(target)
            elif line:
                match = re.search(r"CMakeFiles/([^/]+)\.dir/", line)
                target = match[1] if match else ""
        return found


def is_within(folder: str, other: str) -> bool:
    return not other or folder == other or folder.startswith(other + "/")


def sources_of(paths: list[str]) -> set[str]:
    """The sources, and those that generated ones are united of."""
    found = set(paths)
    for path in paths:
        if re.search(r"/united/\w+\.cc$", path):
            found |= set(re.findall(r'^#include "(.+)"', Path(path).read_text(), re.M))
    return found


def said(*command: str | Path) -> str:
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        print(done.stdout)
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}")
    return done.stdout


def targets_for(programs: Programs, pattern: str) -> list[str]:
    """What is no test, which Python's tests may need, and the programs of tests to run."""
    wanted = set()
    for target in programs.targets.values():
        is_made = target.kind in ("EXECUTABLE", "MODULE_LIBRARY", "SHARED_LIBRARY")
        is_aside = target.folder.startswith(
            ("tests/benchmarks", "tests/gpu", "tests/fuzz")
        )
        is_test = target.name in programs.tests().values()
        if is_made and not is_aside and not is_test:
            wanted.add(target.name)
    for name, program in programs.tests().items():
        if program and (pattern in name or has_test(programs, program, pattern)):
            wanted.add(program)
    return sorted(wanted)


def has_test(programs: Programs, program: str, pattern: str) -> bool:
    """Whether sources of a program, or of tests that it shares, have such a test."""
    for part in programs.parts(program):
        target = programs.targets[part]
        if not target.folder.startswith("tests"):
            continue
        for source in target.sources:
            file = ROOT / source
            if not file.is_file() or not source.startswith("tests/"):
                continue
            if any(
                pattern in ".".join(names) for names in TEST.findall(file.read_text())
            ):
                return True
    return False


def listed(text: str) -> list[str]:
    """The tests that GoogleTest lists."""
    names, suite = [], ""
    for line in text.splitlines():
        word = line.split("#")[0].strip()
        if not line.startswith("  "):
            suite = word
        elif suite.endswith("."):
            names.append(suite + word)
    return names


class Choice(NamedTuple):
    """What is to run."""

    ctest: list[str]  # CTest's tests
    filter: list[str]  # of these, GoogleTest's; all if empty
    pytest: dict[str, list[str]]  # for each folder of FOLDERS, arguments
    what: str


def choose_by_name(programs: Programs, pattern: str) -> Choice:
    google_tests = programs.google_tests()
    whole = [name for name in programs.tests() if pattern in name]
    names, filters = list(whole), set[str]()
    for program, tests in google_tests.items():
        chosen = [test for test in tests if pattern in test]
        if program in whole:
            filters |= {test.partition(".")[0] + ".*" for test in tests}
        elif chosen:
            names.append(program)
            filters |= set(chosen)
    chosen_nodes = {folder: nodes(folder, pattern) for folder in FOLDERS}
    count = sum(map(len, chosen_nodes.values()))
    programs_said = ", ".join(names) or "no program"
    what = f"names with {pattern}: {programs_said}; {count} of Python's tests"
    return Choice(names, sorted(filters), chosen_nodes, what)


def nodes(folder: str, pattern: str) -> list[str]:
    """Tests of pytest in tests/FOLDER, whose conftest.py hides another folder's."""
    collected = said(
        sys.executable, "-m", "pytest", "--collect-only", "-q", f"tests/{folder}"
    )
    names = [line for line in collected.splitlines() if line.startswith(f"{folder}/")]
    return [f"tests/{name}" for name in names if "::" in name and pattern in name]


def changed_files() -> list[str]:
    """What differs from the last commit, or if nothing does, what that commit changed."""
    files = said("git", "diff", "--name-only", "HEAD").splitlines()
    files += said("git", "ls-files", "--others", "--exclude-standard").splitlines()
    return files or said("git", "diff", "--name-only", "HEAD~", "HEAD").splitlines()


def choose_by_change(programs: Programs, changed: list[str]) -> Choice:
    touched = programs.of_files(changed)
    if any(file.endswith(SOURCES) for file in changed):
        touched.add(READS_SOURCES)
    names = [
        name
        for name, program in programs.tests().items()
        if program and programs.parts(program) & touched
    ]
    parts = set[str]().union(*map(programs.parts, STARTED))
    is_started = not parts.isdisjoint(touched)
    files = {
        "python": python_tests(
            changed, "tests/python", ("client/python/",), is_started
        ),
        "deploy": python_tests(changed, "tests/deploy", ("deploy/",), is_started),
        "verdict": python_tests(
            changed, "tests/verdict", ("tests/run", "deploy/prepare.sh"), False
        ),
    }
    if files["python"] != ["tests/python"]:
        files["python"] = sorted({*files["python"], *readers_of(changed)})
    paths = [path for folder in FOLDERS for path in files[folder]]
    # A core that is to be built, and what depends on it.
    if any(file.startswith(NATIVE) for file in changed):
        files["native"] = ["tests/python"]
        paths.append("the native core")
    what = (
        f"touched by {len(changed)} files: {', '.join(names) or 'no program'}; "
        f"{', '.join(paths) or 'no Python'}"
    )
    return Choice(names, [], files, what)


def readers_of(changed: list[str]) -> set[str]:
    return {
        reader
        for pattern, readers in READERS.items()
        if any(re.fullmatch(pattern, file) for file in changed)
        for reader in readers
    }


def python_tests(
    changed: list[str], folder: str, of: tuple[str, ...], is_all: bool
) -> list[str]:
    """The files of tests in the folder, or the folder, as the change touches them."""
    tests = set()
    for file in changed:
        is_test = re.fullmatch(re.escape(folder) + r"/test_\w+\.py", file) is not None
        if is_test and (ROOT / file).exists():
            tests.add(file)
        elif (
            not is_test
            and file.startswith((folder + "/", *of))
            and not file.endswith(".md")
        ):
            is_all = True
    return [folder] if is_all else sorted(tests)


def write(choice: Choice, folder: Path) -> None:
    tests = "|".join(map(re.escape, choice.ctest))
    lines = {
        "ctest": [f"^({tests})$"] if tests else [],
        "filter": [":".join(choice.filter)] if choice.filter else [],
        **choice.pytest,
        "what": [f"quick, {choice.what}"],
    }
    for name, text in lines.items():
        if text:
            (folder / name).write_text("\n".join(text) + "\n")


def main(action: str, build: str, *rest: str) -> None:
    programs = Programs(ROOT / build)
    if action == "targets":
        print(*targets_for(programs, rest[0]))
        return
    folder, *pattern = rest
    choice = (
        choose_by_name(programs, *pattern)
        if pattern
        else choose_by_change(programs, changed_files())
    )
    write(choice, ROOT / folder)
    print(choice.what)


if __name__ == "__main__":
    main(*sys.argv[1:])

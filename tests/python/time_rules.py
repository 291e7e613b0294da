"""Reads tests for what depends on how fast a machine is.

A test that sleeps before it looks, sets a limit of less than LEAST_SECONDS, or has threads,
processes or sockets of its own, itself or by what is in its file, carries the label `timing`, by
which `tests/stress` finds it. Calls of a server are none of these, wherever it runs. No assertion
bounds elapsed time by less than LEAST_SECONDS; that it allows ten times what an idle machine
takes is for whoever writes it to see. What is right all the same says why, in a comment on the
statement or in front of it:

    # time: the deadline is to pass

In C++ the label is TIMING or TIMING_HIGH of `tensord_test`, by name; in Python the mark of a
test or of its file. A test whose clock is its own is not read.
"""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LEAST_SECONDS = 5.0
REASON = re.compile(r"(#|//) time: \w+")


class Finding(NamedTuple):
    """A line that breaks the rule."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


NEEDS_REASON = "an assertion on elapsed time with less than 5 s, or with an unknown bound"
NEEDS_LABEL = "{}, without the label `timing`"


# Python

CLOCKS = re.compile(
    r"(\w+\.)*(time|monotonic|perf_counter|process_time|thread_time)(_ns)?"
    r"|(datetime\.)?datetime\.now"
)
DURATION = re.compile(r"(\w+_)?((milli|micro|nano)?seconds|elapsed|took|[mun]s)(_ns)?$")
PARTS = {"ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "microseconds": 1e-6}
PARTS |= {"ns": 1e-9, "nanoseconds": 1e-9}
WAITS = {"eventually": 1, "listens": 1}  # functions, with where they take seconds
BESIDE = re.compile(
    r"(\w+\.)*(Thread|Timer|ThreadPoolExecutor|Popen)|os\.(kill|killpg|fork)"
    r"|\w+(\.\w+)*\.send_signal|socket\.(socket|socketpair|create_connection|create_server)"
    r"|asyncio\.(gather|create_task|wait_for|timeout)"
)
LIMITS = {"timeout", "deadline", "lease", "max_wait"}
LIMIT_CALLS = {"settimeout", "result", "wait", "join"}
LIMIT_FLAG = re.compile(r"--[a-z-]*(?:seconds|timeout|lease)[a-z-]*=(\d*\.?\d+)$")


def dotted(node: ast.expr) -> str:
    """`a.b.c` of names and attributes; what is called on something else begins with a dot."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def calls_in(node: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            yield dotted(each.func), each


def seconds_of_one(name: str) -> float:
    """Of the unit that the name of a clock or of a duration ends with."""
    return PARTS.get(re.split(r"[_.]", name)[-1], 1.0)


def reads_clock(node: ast.AST) -> bool:
    return any(CLOCKS.fullmatch(name) for name, _ in calls_in(node))


class Constants:
    """Numbers by name, in a file and in the files beside it that it imports."""

    def __init__(self, tree: ast.Module, folder: Path) -> None:
        self._values: dict[str, float] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._add(folder / f"{alias.name}.py", f"{alias.asname or alias.name}.")
            elif isinstance(statement, ast.ImportFrom):
                self._add(folder / f"{statement.module}.py", "")
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    value = self.value(statement.value, set())
                    if isinstance(target, ast.Name) and value is not None:
                        self._values[target.id] = value

    def _add(self, path: Path, prefix: str) -> None:
        if path.exists():
            imported = Constants(ast.parse(path.read_text()), path.parent)
            self._values |= {prefix + name: value for name, value in imported._values.items()}

    def value(self, node: ast.expr, moments: set[str]) -> float | None:
        """The number that an expression is, with moments as 0."""
        if isinstance(node, ast.Constant):
            is_number = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
            return float(node.value) if is_number else None
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left, moments), self.value(node.right, moments)
            if isinstance(node.op, ast.Add) and left is not right:
                return (left or 0) + (right or 0)  # what is unknown adds to it
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, (ast.Mult, ast.Pow)):
                return left * right if isinstance(node.op, ast.Mult) else left**right
            return left / right if isinstance(node.op, ast.Div) and right else None
        if isinstance(node, ast.Call) and dotted(node.func) == "max":
            values = [self.value(each, moments) for each in node.args]
            return max((each for each in values if each is not None), default=None)
        name = dotted(node)
        return 0.0 if name in moments else self._values.get(name)


class PythonReader:
    """Reads one file."""

    def __init__(self, path: str, text: str, folder: Path) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._tree = ast.parse(text)
        self._constants = Constants(self._tree, folder)
        self._functions = {
            each.name: each
            for each in ast.walk(self._tree)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        self._classes = {
            each.name: each for each in self._tree.body if isinstance(each, ast.ClassDef)
        }
        self._parents = {
            child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)
        }
        self._file_is_labelled = any(
            isinstance(each, ast.Assign)
            and dotted(each.targets[0]) == "pytestmark"
            and self._is_label(each.value)
            for each in self._tree.body
        )

    def findings(self) -> list[Finding]:
        found = set()
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assert):
                found |= {*self._of_assertion(node)}
            elif isinstance(node, ast.Call):
                found |= {*self._of_call(node)}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                flag = LIMIT_FLAG.fullmatch(node.value)
                if flag and self._is_short(float(flag[1])):
                    found |= {*self._unlabelled(node, f"a limit of {flag[1]} s")}
        for name, function in self._functions.items():
            if name.startswith("test_") and self._runs_beside(function, set()):
                found |= {*self._unlabelled(function, "threads, processes or sockets")}
        return sorted(found, key=lambda finding: (finding.line, finding.what))

    def _is_label(self, node: ast.AST) -> bool:
        return any(
            isinstance(each, ast.Attribute) and dotted(each) == "pytest.mark.timing"
            for each in ast.walk(node)
        )

    def _has_reason(self, node: ast.AST) -> bool:
        """In the lines of its statement, or in the comment in front of that."""
        while not isinstance(node, ast.stmt):
            node = self._parents[node]
        begin = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        end = node.end_lineno or begin
        if isinstance(node, (ast.With, ast.For, ast.While, ast.If, ast.FunctionDef, ast.AsyncWith)):
            end = node.body[0].lineno - 1
        while begin > 1 and self._lines[begin - 2].lstrip().startswith("#"):
            begin -= 1
        return any(REASON.search(line) for line in self._lines[begin - 1 : end])

    def _around(self, node: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions that a node is in, the outermost last."""
        found = []
        while node in self._parents:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.append(node)
            node = self._parents[node]
        return found

    def _has_own_clock(self, node: ast.AST) -> bool:
        return any(
            name.endswith("monkeypatch.setattr")
            and bool(call.args)
            and isinstance(call.args[0], ast.Constant)
            and bool(CLOCKS.fullmatch(str(call.args[0].value)))
            for function in self._around(node)
            for name, call in calls_in(function)
        )

    def _unlabelled(self, node: ast.AST, what: str) -> Iterator[Finding]:
        is_labelled = self._file_is_labelled or any(
            self._is_label(mark) for each in self._around(node) for mark in each.decorator_list
        )
        if not (is_labelled or self._has_reason(node) or self._has_own_clock(node)):
            yield Finding(self._path, node.lineno, NEEDS_LABEL.format(what))

    def _is_short(self, seconds: float | None) -> bool:
        return seconds is not None and 0 < seconds < LEAST_SECONDS

    def _names(self, node: ast.AST) -> tuple[set[str], set[str]]:
        """Moments and durations that the functions around a node name."""
        moments, durations = set(), set()
        for function in self._around(node):
            for each in ast.walk(function):
                if isinstance(each, ast.Assign) and reads_clock(each.value):
                    names = {dotted(target) for target in each.targets}
                    is_difference = any(
                        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub)
                        for part in ast.walk(each.value)
                    )
                    (durations if is_difference else moments).update(names)
        return moments, durations

    def _of_assertion(self, node: ast.Assert) -> Iterator[Finding]:
        moments, durations = self._names(node)

        def unit(side: ast.AST) -> float | None:
            """The seconds of one, where the side is a time that has gone by."""
            clocks = [name for name, _ in calls_in(side) if CLOCKS.fullmatch(name)]
            names = [dotted(each) for each in ast.walk(side) if isinstance(each, ast.expr)]
            names += [
                str(each.slice.value)
                for each in ast.walk(side)
                if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Constant)
            ]
            found = clocks or [
                name
                for name in names
                if (name and name in durations) or DURATION.match(name.rpartition(".")[2])
            ]
            return seconds_of_one(found[0]) if found else None

        for compare in (each for each in ast.walk(node) if isinstance(each, ast.Compare)):
            sides = [compare.left, *compare.comparators]
            parent = self._parents[compare]
            is_negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
            for left, op, right in zip(sides, compare.ops, sides[1:]):
                if isinstance(op, (ast.Gt, ast.GtE)) != is_negated:
                    left, right = right, left
                if isinstance(op, ast.Eq) and any("approx" in name for name, _ in calls_in(compare)):
                    is_short = unit(left) is not None
                elif isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and (one := unit(left)):
                    bound = self._constants.value(right, moments)
                    is_short = bound is None or bound * one < LEAST_SECONDS
                else:
                    continue
                if is_short and not self._has_reason(node) and not self._has_own_clock(node):
                    yield Finding(self._path, node.lineno, NEEDS_REASON)

    def _of_call(self, node: ast.Call) -> Iterator[Finding]:
        name = dotted(node.func)
        last = name.rpartition(".")[2] or getattr(node.func, "attr", "")
        keywords = {each.arg: each.value for each in node.keywords}
        first = node.args[0] if node.args else None

        def seconds(of: ast.expr | None) -> float | None:
            return None if of is None else self._constants.value(of, set())

        if last in WAITS:
            given = node.args[1] if len(node.args) > 1 else keywords.get("seconds")
            if self._is_short(seconds(given)) and not self._has_reason(node):
                yield Finding(self._path, node.lineno, NEEDS_REASON)
        elif name == "time.sleep" and self._asserts_behind(node):
            yield from self._unlabelled(node, "sleeps before an assertion")
        elif last == "FromSeconds" and "lease" in name and self._is_short(seconds(first)):
            yield from self._unlabelled(node, f"a lease of {seconds(first)} s")
        elif last in LIMIT_CALLS and self._is_short(seconds(first)):
            yield from self._unlabelled(node, f"a limit of {seconds(first)} s")
        for key, value in keywords.items():
            is_limit = key in LIMITS or bool(key and key.endswith("_seconds"))
            if is_limit and self._is_short(seconds(value)):
                yield from self._unlabelled(node, f"a limit of {seconds(value)} s")

    def _asserts_behind(self, sleep: ast.Call) -> bool:
        around = self._around(sleep)
        return bool(around) and any(
            isinstance(each, ast.Assert) and each.lineno > sleep.lineno
            for each in ast.walk(around[-1])
        )

    def _runs_beside(self, node: ast.AST, seen: set[ast.AST]) -> bool:
        """Whether it has threads, processes or sockets, itself or by what it uses of the file."""
        if node in seen:
            return False
        seen.add(node)
        if any(
            BESIDE.fullmatch(name) and not self._has_reason(call) for name, call in calls_in(node)
        ):
            return True
        used = {name for name, _ in calls_in(node)}
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            used |= {each.arg for each in node.args.args}
        used_here = [*(self._functions.get(name) for name in used)]
        used_here += [*(self._classes.get(name) for name in used)]
        return any(each is not None and self._runs_beside(each, seen) for each in used_here)


def read_python(path: str, text: str, folder: Path) -> list[Finding]:
    """What breaks the rule in a Python file; it imports those of a folder."""
    return PythonReader(path, text, folder).findings()


# C++

UNITS = {"Nanoseconds": 1e-9, "Microseconds": 1e-6, "Milliseconds": 1e-3, "Seconds": 1}
UNITS |= {"Minutes": 60, "Hours": 3600}
UNITS |= {name.lower(): value for name, value in UNITS.items()}
AMOUNT = re.compile(rf"\b({'|'.join(UNITS)})(?:\s+\w+)?[({{]\s*(\d+(?:\.\d+)?)\s*[)}}]")
CONSTANT = re.compile(r"\b(k\w+)\s*(?:=|\()\s*([^;]*)")
NOW = re.compile(
    r"\b(absl::Now|SteadyNow|steady_clock::now|system_clock::now|std::clock|\w*_seconds)\(\)"
)
ASSERTION = re.compile(r"\b(EXPECT|ASSERT)_\w+")
SLEEP = re.compile(r"\b(SleepFor|sleep_for)\(")
LIMIT = re.compile(r"(?i)\b\w*(deadline|timeout|lease|idle|patience|drain)\b")
OWN_THREAD = re.compile(r"\bstd::(thread|jthread|async)\b(?!::)|\bfork\(\)|\bSIG(STOP|KILL|TERM)\b")
# What an assertion says that is over before a moment, or took less than a bound; of {}.
UPPER_BOUNDS = (
    r"_(LT|LE|NEAR)\([^,]*{}",
    r"_(GT|GE)\(.*,[^,]*{}",
    r"_TRUE\(.*{}[^,]*\s<",
    r"_TRUE\(.*\s>=?\s[^,]*{}",
    r"_FALSE\(.*{}[^,]*\s>",
    r"_FALSE\(.*\s<=?\s[^,]*{}",
    r"_THAT\(.*{}.*,\s*(?:\w+::)*(Lt|Le)\(",
)
CLASS = re.compile(r"^(?:class|struct) (\w+)[^;{]*\{.*?^\};", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)


def bounds(statement: str, elapsed: set[str]) -> bool:
    """Whether it is an assertion that bounds a clock, or one of these names, from above."""
    if not ASSERTION.search(statement):
        return False
    what = "|".join([NOW.pattern, *(rf"\b{name}\b" for name in elapsed)])
    return any(
        re.search(each.replace("{}", f"(?:{what})"), statement, re.DOTALL) for each in UPPER_BOUNDS
    )


def uncommented(text: str) -> str:
    """The same, with blanks for comments and for what strings say."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"'
    return re.sub(
        pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL
    )


class CppReader:
    """Reads one file."""

    def __init__(self, path: str, text: str, labels: list[str], constants: dict[str, float]) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._labels = labels
        self._code = uncommented(text)
        self._constants = dict(constants)
        for name, value in CONSTANT.findall(self._code):
            if (amount := self._seconds(value)) is not None:
                self._constants[name] = amount
        self._beside = self._classes_beside()

    def findings(self) -> list[Finding]:
        found = []
        begin = 0
        starts = [*TEST.finditer(self._code)]
        ends = [each.start() for each in starts[1:]] + [len(self._code)]
        if starts:
            begin = starts[0].start()
        found += self._of_part(0, begin if starts else len(self._code), None)
        for start, end in zip(starts, ends):
            found += self._of_part(start.start(), end, f"{start[1]}.{start[2]}")
            found += self._of_classes(start, end)
        return found

    def _classes_beside(self) -> set[str]:
        """Classes of the file that have threads or processes, or use one that has."""
        bodies = {each[1]: each for each in CLASS.finditer(self._code)}
        found = {name for name, body in bodies.items() if self._runs_beside(body)}
        while True:
            users = {
                name
                for name, body in bodies.items()
                if name not in found and found & set(re.findall(r"\w+", body[0]))
            }
            if not users:
                return found
            found |= users

    def _runs_beside(self, body: re.Match[str]) -> bool:
        for thread in OWN_THREAD.finditer(body[0]):
            line = self._code.count("\n", 0, body.start() + thread.start()) + 1
            if not self._has_reason(line, line):
                return True
        return False

    def _of_classes(self, start: re.Match[str], end: int) -> Iterator[Finding]:
        test = f"{start[1]}.{start[2]}"
        line = self._code.count("\n", 0, start.start()) + 1
        words = set(re.findall(r"\w+", self._code[start.start() : end]))
        used = sorted(self._beside & words)
        if used and not self._is_labelled(test) and not self._has_reason(line, line):
            yield Finding(self._path, line, NEEDS_LABEL.format(f"threads or processes of {used[0]}"))

    def _is_labelled(self, test: str | None) -> bool:
        # What is in front of the tests serves all of them.
        if test is None:
            return bool(self._labels)
        return any(matches(test, filter_) for filter_ in self._labels)

    def _seconds(self, text: str) -> float | None:
        """The sum of the durations that a text names."""
        amounts = [UNITS[unit] * float(count) for unit, count in AMOUNT.findall(text)]
        names = re.findall(r"\bk[A-Z]\w*", text)
        amounts += [self._constants[name] for name in names if name in self._constants]
        return sum(amounts) if amounts else None

    def _has_reason(self, line: int, last: int) -> bool:
        while line > 1 and self._lines[line - 2].lstrip().startswith("//"):
            line -= 1
        return any(REASON.search(each) for each in self._lines[line - 1 : last])

    def _of_part(self, begin: int, end: int, test: str | None) -> Iterator[Finding]:
        code = self._code[begin:end]
        difference = rf"\b(\w+)\s*=\s*[^;]*?{NOW.pattern}\s*-[^;]*;"
        elapsed = {found[1] for found in re.finditer(difference, code)}
        for name in [*elapsed]:  # the same as a number
            converted = rf"\b(\w+)\s*=\s*(?:\w+::)*\w+\({name}\)[^;]*;"
            elapsed |= {found[1] for found in re.finditer(converted, code)}
        moment = rf"\b(\w+)\s*=\s*{NOW.pattern}\s*\+([^;]*);"
        until = {found[1]: self._seconds(found[3]) for found in re.finditer(moment, code)}
        position = 0
        thread_line = 0
        for statement in re.split(r"(?<=[;{}])", code):
            start = begin + position + len(statement) - len(statement.lstrip())
            position += len(statement)
            line = self._code.count("\n", 0, start) + 1
            last = self._code.count("\n", 0, begin + position) + 1
            seconds = self._seconds(statement)
            named = [until[name] for name in re.findall(r"\w+", statement) if name in until]
            if NOW.search(statement) and named:
                seconds = (seconds or 0) + sum(each or 0 for each in named)
            is_short = seconds is not None and 0 < seconds < LEAST_SECONDS
            if bounds(statement, elapsed):
                if (is_short or seconds is None) and not self._has_reason(line, last):
                    yield Finding(self._path, line, NEEDS_REASON)
                continue
            is_limit = bool(LIMIT.search(statement)) and is_short
            is_limit = is_limit and not statement.lstrip().startswith("EXPECT_EQ")
            sleeps = bool(SLEEP.search(statement)) and bool(
                test is not None and ASSERTION.search(self._code, begin + position, end)
            )
            if OWN_THREAD.search(statement) and test is not None:
                thread_line = thread_line or line
                if self._has_reason(line, last):
                    thread_line = -1
            if (is_limit or sleeps) and not self._is_labelled(test):
                what = f"a limit of {seconds} s" if is_limit else "sleeps before an assertion"
                if not self._has_reason(line, last):
                    yield Finding(self._path, line, NEEDS_LABEL.format(what))
        if thread_line > 0 and not self._is_labelled(test):
            yield Finding(self._path, thread_line, NEEDS_LABEL.format("threads or processes"))


def matches(test: str, filter_: str) -> bool:
    """Whether a test is of a GoogleTest filter; that of all types or values is of its name."""
    wanted, _, unwanted = filter_.partition("-")

    def is_of(patterns: str) -> bool:
        plain = [re.sub(r"^[^.]*/|/[^.]*(?=\.)|(?<=\.)([\w*]+)/.*", r"\1", each) for each in patterns.split(":")]
        return any(fnmatch.fnmatchcase(test, each) for each in plain)

    return is_of(wanted or "*") and not (unwanted and is_of(unwanted))


def read_cpp(
    path: str, text: str, labels: list[str], constants: dict[str, float] | None = None
) -> list[Finding]:
    """What breaks the rule in a C++ file; `labels` are the filters of the tests with the label."""
    return CppReader(path, text, labels, constants or {}).findings()


KEYWORDS = set("SOURCES UNTHREADED DEPS PRECOMPILED SHARDS COST TIMING TIMING_HIGH THREADS OPTIMIZED".split())


def labels_of(cmake: str) -> dict[str, list[str]]:
    """The filters of the tests with the label, by source as a CMake file names it."""
    words = re.sub(r"#[^\n]*", "", cmake)
    libraries: dict[str, list[str]] = {}
    for name, body in re.findall(r"add_library\(\s*(\S+)\s+OBJECT\s([^)]*)\)", words):
        libraries[name] = [word for word in body.split() if word.endswith(".cc")]
    found: dict[str, list[str]] = {}
    for body in re.findall(r"\n\s*tensord_test\(([^)]*)\)", words):
        parts: dict[str, list[str]] = {}
        of = parts.setdefault("NAME", [])
        for word in body.split():
            if word in KEYWORDS:
                of = parts.setdefault(word, [])
            else:
                of.append(word.strip('"'))
        sources = [each for each in parts.get("SOURCES", []) + parts.get("UNTHREADED", [])]
        for library in parts.get("DEPS", []):
            sources += libraries.get(library, [])
        labels = parts.get("TIMING", []) + parts.get("TIMING_HIGH", [])
        for source in sources:
            found.setdefault(source, []).extend(labels)
    return found

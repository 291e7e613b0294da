"""The rows that the parts print, one JSON object a line, and what follows from them."""

import json
import math
import pathlib
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

Row = dict


def load(path: pathlib.Path) -> list[Row]:
    """All rows of a file. A last line that was cut off when its writer was stopped is left out."""
    rows = []
    lines = path.read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            if number != len(lines):
                raise ValueError(f"{path}:{number}: not a row: {line[:80]}") from None
    return rows


def of_part(rows: Iterable[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def counts(rows: Iterable[Row]) -> tuple[int, int]:
    """Cases that ran and cases for which no time was left."""
    ends = [row for row in rows if "cases_done" in row]
    return sum(row["cases_done"] for row in ends), sum(row["cases_left_out"] for row in ends)


def grouped(items: Iterable, key: Callable) -> dict:
    groups: dict = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


@dataclass
class Case:
    """One problem with the times of all kernels that ran it, in nanoseconds."""

    facts: Row  # what the kernels' rows have in common
    limit_ns: float  # of the copy or the reading that it is compared with
    runs: dict[str, Row] = field(default_factory=dict)  # by kernel
    peers: dict[str, float] = field(default_factory=dict)  # ns by peer

    @property
    def chosen(self) -> Row | None:
        """The run of the kernel that the planner chooses."""
        return next((run for run in self.runs.values() if run["chosen"]), None)

    @property
    def best(self) -> Row:
        return min(self.runs.values(), key=lambda run: run["ns"])

    def ratio(self, run: Row) -> float:
        """To the limit; 1 is as fast."""
        return self.limit_ns / run["ns"]

    def rate(self, run: Row) -> float:
        """GB/s read and written."""
        return self.facts["bytes"] / run["ns"]


def case_key(row: Row) -> tuple:
    return tuple(row.get(name) for name in ("part", "suite", "id", "case", "type"))


def cases(rows: Iterable[Row], part: str) -> list[Case]:
    """The cases of a part of which at least the chosen kernel ran, with what peers made of them."""
    rows = list(rows)
    found: dict[tuple, Case] = {}
    for row in of_part(rows, part):
        if "ns" not in row or "kernel" not in row:
            continue
        limit = row.get("copy_ns", row.get("read_ns"))
        case = found.setdefault(case_key(row), Case(facts=row, limit_ns=limit))
        case.runs[row["kernel"]] = row
    for row in of_part(rows, "peers"):
        case = found.get(case_key({**row, "part": row.get("of_part")}))
        if case is not None and "ns" in row:
            case.peers[row["peer"]] = row["ns"]
    return [case for case in found.values() if case.chosen is not None]


def wrong_results(rows: Iterable[Row]) -> Iterator[Row]:
    """Runs whose result differs from the reference kernel's, or failed the check of contractions."""
    return (row for row in rows if row.get("differing_bytes", 0) > 0 or row.get("wrong_sums", 0) > 0)

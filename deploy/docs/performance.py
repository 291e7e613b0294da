"""Fills performance.md with tables of tests/benchmarks/results, and draws plots of them.

    python3 deploy/docs/performance.py [FOLDER]

Between `<!-- table: FILE: HEADING -->` and `<!-- end -->` goes the first table, or else the
first block, below that heading of the file, as it is; `table 2:` has the second one. A file
that says that it is void is refused. FOLDER gets performance.md and pictures/; deploy/docs unless given.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from drawing import Drawing

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parents[1] / "tests/benchmarks/results"
COLOURS = {"float32": "#3563c9", "float64": "#c9622f"}
MARKED = re.compile(r"(<!-- table(?: (\d))?: (\S+): (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def section(name: str, heading: str) -> str:
    """What a file of results has below a heading."""
    text = (RESULTS / name).read_text()
    if "**Void**" in text:
        raise ValueError(f"{name} is void")
    found = re.search(rf"^#+ {re.escape(heading)}$(.+?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"{name} has no heading '{heading}'")
    return found[1]


def table(name: str, heading: str, number: int = 1) -> str:
    text = section(name, heading)
    found: list[str] = re.findall(r"(?:^\|.+\n?)+", text, re.MULTILINE) or re.findall(r"```\n.+?```", text, re.DOTALL)
    if len(found) < number:
        raise ValueError(f"{name} has no table {number} below '{heading}'")
    return found[number - 1].rstrip() + f"\n\nFrom [{name}](../../tests/benchmarks/results/{name}).\n"


def filled(page: str) -> str:
    return MARKED.sub(
        lambda found: f"{found[1]}\n{table(found[3], found[4], int(found[2] or 1))}\n{found[5]}", page
    )


class Case(NamedTuple):
    """A case of a suite: what it is of, and its ratio to the limit."""

    type: str
    group: str
    ratio: float


def cases(name: str, heading: str) -> list[Case]:
    """Of a list "float32 ttm 01: 235, 0.66, 0.64; ...", the last number of each."""
    found = re.findall(r"(float\d+) (\w+) \d+\*?: ([\d., ]+)[;.]", section(name, heading))
    return [Case(type, group, float(numbers.split(",")[-1])) for type, group, numbers in found]


def dots(title: str, limit: str, found: list[Case]) -> Drawing:
    """A dot a case, by its group, beside the limit of 1."""
    groups = list(dict.fromkeys(case.group for case in found))
    left, width, row = 110, 620, 54
    picture = Drawing(left + width + 40, 74 + row * len(groups), title)
    picture.text(16, 24, title, is_bold=True)
    most = 1.75
    for tick in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75):
        x = left + width * tick / most
        picture.line(x, 40, x, 46 + row * len(groups))
        words = f"1 = {limit}" if tick == 1 else f"{tick:g}"
        picture.text(x, 62 + row * len(groups), words, anchor="middle", size=11)
    for number, group in enumerate(groups):
        y = 40 + row * number + row / 2
        picture.text(16, y + 4, group)
        for shift, (type, colour) in zip((-9, 9), COLOURS.items(), strict=True):
            for case in found:
                if (case.group, case.type) == (group, type):
                    picture.dot(left + width * case.ratio / most, y + shift, colour)
    for number, (type, colour) in enumerate(COLOURS.items()):
        if any(case.type == type for case in found):
            picture.dot(left + width - 170 + 90 * number, 20, colour)
            picture.text(left + width - 160 + 90 * number, 24, type, size=12)
    return picture


def bars(title: str, unit: str, rows: list[tuple[str, float]]) -> Drawing:
    """A bar a row, with its number."""
    left, width, height = 250, 430, 34
    picture = Drawing(left + width + 110, 52 + height * len(rows), title)
    picture.text(16, 24, title, is_bold=True)
    most = max(value for _, value in rows)
    for number, (name, value) in enumerate(rows):
        y = 42 + height * number
        picture.text(16, y + 15, name)
        picture.bar(left, y, max(2, width * value / most), 20, "client")
        picture.text(left + width * value / most + 8, y + 15, f"{value:g} {unit}", size=12)
    return picture


def number(name: str, heading: str, row: str, column: int) -> float:
    """The first number of a cell of the table below the heading."""
    for line in table(name, heading).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if ", ".join(cells).startswith(row):
            return float(re.findall(r"\d+(?:\.\d+)?", cells[column])[0])
    raise ValueError(f"{name} has no row '{row}' below '{heading}'")


def plots() -> dict[str, Drawing]:
    xeon, programs = "2026-11-21-cpu-xeon.md", "2026-11-23-cpu-epyc-programs.md"
    peers, sharing = "Against peers on the same cases", "2026-11-24-cpu-epyc-sharing.md"
    clients = "What clients take from each other"
    suites = {
        "permutation, NumPy": "ttc, float32, numpy",
        "permutation, PyTorch": "ttc, float32, torch",
        "contraction float32, NumPy": "tccg, float32, numpy",
        "contraction float32, PyTorch": "tccg, float32, torch",
        "contraction float64, NumPy": "tccg, float64, numpy",
        "contraction float64, PyTorch": "tccg, float64, torch",
    }
    circuit = "An amplitude of a random circuit of 36 qubits"
    return {
        "permutation": dots(
            "permutation, TTC-57, each case to a streaming copy",
            "a copy",
            cases(xeon, "Permutation, TTC-57, float32"),
        ),
        "contraction": dots(
            "contraction, TCCG-48, each case to a square product",
            "a square product",
            cases("2026-11-23-cpu-epyc-direct.md", "The direct contraction kernel on the CPU, 2026-11-23"),
        ),
        "peers": bars(
            "how many times as fast as these (geometric mean)",
            "times",
            [(name, number(xeon, peers, row, 4)) for name, row in suites.items()],
        ),
        "circuit": bars(
            "an amplitude of 36 qubits, search and contraction",
            "s",
            [(row, number(programs, circuit, row, 1)) for row in ("tensord", "cotengra 0.8.3 on NumPy")],
        ),
        "sharing": bars(
            "a small operation, 50 a second: p99",
            "ms",
            [
                (row, number(sharing, clients, row, 2))
                for row in ("small alone", "small beside heavy", "small beside 8e12 elements")
            ],
        ),
    }


def main(folder: Path = DOCS) -> None:
    (folder / "performance.md").write_text(filled((DOCS / "performance.md").read_text()))
    (folder / "pictures").mkdir(exist_ok=True)
    for name, picture in plots().items():
        picture.save(folder / f"pictures/{name}.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

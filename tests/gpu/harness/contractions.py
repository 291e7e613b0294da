"""The contractions that gpu_bench measures, for the peers: the same files, the same order."""

import csv
import math
import pathlib
from dataclasses import dataclass

FILES = {"tccg48": "tccg48.csv", "random": "random_contractions.csv"}  # by suite
IN_PARTS = "float32 in 3xtf32"  # of the bench alone
COLUMNS = {"float32": "extents_f32", "float64": "extents_f64", "complex64": "extents_f64"}  # by type
ELEMENT_BYTES = {"float32": 4, "float64": 8, "complex64": 8}
STEP = 7  # as in contraction_cases.cc


@dataclass
class ContractionCase:
    """Every label is in two of d, a and b; the first mode is the fastest."""

    suite: str
    id: int
    group: str
    d: str
    a: str
    b: str
    extents: dict[str, dict[str, int]]  # by type and label

    @property
    def einsum(self) -> str:
        """For frameworks whose last mode is the fastest."""
        return f"{self.a[::-1]},{self.b[::-1]}->{self.d[::-1]}"

    def shape(self, labels: str, type_name: str) -> list[int]:
        """Last mode fastest."""
        return [self.extents[type_name][label] for label in reversed(labels)]

    def elements(self, labels: str, type_name: str) -> int:
        return math.prod(self.shape(labels, type_name))

    def bytes(self, type_name: str) -> int:
        """Of a, b and d."""
        return ELEMENT_BYTES[type_name] * sum(self.elements(labels, type_name) for labels in (self.a, self.b, self.d))

    def matrix(self, type_name: str) -> tuple[int, int, int]:
        """m, n and k of the product of matrices that it is."""
        m = "".join(label for label in self.d if label in self.a)
        n = "".join(label for label in self.d if label in self.b)
        k = "".join(label for label in self.a if label in self.b)
        return tuple(self.elements(labels, type_name) for labels in (m, n, k))


def extents_of(text: str) -> dict[str, int]:
    return {label: int(extent) for label, extent in (pair.split(":") for pair in text.split())}


def read(data: pathlib.Path, suite: str) -> list[ContractionCase]:
    with open(data / FILES[suite], newline="") as file:
        return [
            ContractionCase(
                suite,
                int(row["id"]),
                row["class"],
                *row["tccg"].split("-"),
                {type_name: extents_of(row[column]) for type_name, column in COLUMNS.items()},
            )
            for row in csv.DictReader(line for line in file if not line.startswith("#"))
        ]


def contractions(data: pathlib.Path) -> list[ContractionCase]:
    """Those of the groups take turns, so that the first few are a sample of all."""
    groups: dict[str, list[ContractionCase]] = {}
    for suite in FILES:
        for case in read(data, suite):
            groups.setdefault(case.group, []).append(case)
    ordered: list[ContractionCase] = []
    for turn in range(max(map(len, groups.values()))):
        for group in sorted(groups):
            members = groups[group]
            if turn < len(members):
                step = 1 if len(members) % STEP == 0 else STEP
                ordered.append(members[turn * step % len(members)])
    return ordered

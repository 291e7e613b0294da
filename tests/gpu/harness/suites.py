"""The permutations that gpu_bench measures, for the peers: the same files, the same order."""

import csv
import pathlib
from dataclasses import dataclass

FILES = ("ttc57.csv", "cutt_sets.csv", "published_permutations.csv", "rows_permutations.csv")
TYPES = {"float32": 4, "float64": 8, "float16": 2}
STEP = 7  # as in permutation_cases.cc


@dataclass
class PermutationCase:
    suite: str
    id: int
    extents: list[int]  # first mode fastest
    perm: list[int]  # mode j of the result is mode perm[j] of the operand

    @property
    def elements(self) -> int:
        count = 1
        for extent in self.extents:
            count *= extent
        return count

    def last_mode_fastest(self) -> tuple[list[int], list[int]]:
        """Shape and axes for frameworks whose last mode is the fastest."""
        rank = len(self.extents)
        return self.extents[::-1], [rank - 1 - p for p in reversed(self.perm)]


def suite_of(row: dict[str, str]) -> str:
    if "set" not in row:
        return "ttc57"
    return f"cutt-{row['set']}" if row["set"].replace("-", "").isdigit() else row["set"]


def permutations(data: pathlib.Path) -> list[PermutationCase]:
    """Those of the suites take turns, so that the first few are a sample of all."""
    suites: dict[str, list[PermutationCase]] = {}
    for name in FILES:
        with open(data / name, newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                case = PermutationCase(
                    suite_of(row),
                    int(row["id"]),
                    [int(x) for x in row["extents"].split()],
                    [int(x) for x in row["perm"].split()],
                )
                suites.setdefault(case.suite, []).append(case)
    ordered: list[PermutationCase] = []
    for turn in range(max(map(len, suites.values()))):
        for suite in sorted(suites):
            members = suites[suite]
            if turn < len(members):
                step = 1 if len(members) % STEP == 0 else STEP
                ordered.append(members[turn * step % len(members)])
    return ordered

"""Tables of a page, in Markdown, and what its sections have in common."""

import statistics
from collections.abc import Iterable

from harness.raw import Case, geometric_mean, grouped


def table(header: list[str], rows: Iterable[list], right_from: int = 1) -> list[str]:
    """Columns from `right_from` on are numbers."""
    rule = ["---" if i < right_from else "---:" for i in range(len(header))]
    lines = [header, rule, *[[str(cell) for cell in row] for row in rows]]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def short(kernel: str) -> str:
    return kernel.rsplit(".", 1)[-1]


def median_least_most(values: list[float]) -> list[str]:
    return [f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{max(values):.2f}"]


def name_of(case: Case) -> str:
    facts = case.facts
    return f"{facts['suite']} {facts['id']} {facts['type']}" if "suite" in facts else f"{facts['case']} {facts['type']}"


def kernel_table(all_cases: list[Case]) -> list[str]:
    """How each kernel does where it can run, and how far its cost model is off."""
    runs = grouped(((case, run) for case in all_cases for run in case.runs.values()), lambda pair: pair[1]["kernel"])
    body = []
    for kernel, members in runs.items():
        errors = [run["predicted_ns"] / run["ns"] for _, run in members if run["predicted_ns"] > 0]
        body.append(
            [
                kernel,
                len(members),
                sum(run["chosen"] for _, run in members),
                sum(case.best is run for case, run in members),
                *median_least_most([case.ratio(run) for case, run in members]),
                f"{geometric_mean(errors):.2f}" if errors else "",
                f"{min(errors):.2f} to {max(errors):.2f}" if errors else "",
            ]
        )
    return table(
        ["kernel", "ran", "chosen", "best", "of limit", "least", "most", "predicted / measured", "from, to"], body
    )

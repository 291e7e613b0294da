"""The contractions' section of the page."""

import statistics
from collections.abc import Iterable

from harness.contractions import IN_PARTS
from harness.raw import Case, Row, cases, geometric_mean, grouped, of_part
from harness.tables import kernel_table, name_of, short, table

# In the order of the tables.
CLASSES = {"ttm": "TTM", "ao2mo": "AO2MO", "ccsd": "CCSD", "ccsd_t": "CCSD(T)", "random": "random"}
# The matrix product of equal m, n and k: a limit more than a rival.
PRODUCT = "cublas"
WORST = 12


def product_peaks(rows: Iterable[Row]) -> dict[str, float]:
    """GFLOP/s of cuBLAS' fastest matrix product in this run, by type."""
    rows = list(rows)
    peaks: dict[str, float] = {}
    for row in of_part(rows, "peers"):
        if row.get("peer") == PRODUCT and "gflop_per_s" in row:
            peaks[row["type"]] = max(peaks.get(row["type"], 0), row["gflop_per_s"])
    return peaks


def contraction_cases(rows: Iterable[Row]) -> list[Case]:
    """The cases with the roof as their limit: what takes longer, moving the operands once or the arithmetic.

    Arithmetic of float32, in 3xTF32, too, which may be faster.
    """
    rows = list(rows)
    peaks = product_peaks(rows)
    found = cases(rows, "contraction")
    for case in found:
        peak = peaks.get("float32" if case.facts["type"] == IN_PARTS else case.facts["type"])
        if peak:
            case.limit_ns = max(case.facts["copy_ns"], case.facts["flops"] / peak)
    return found


def is_compute_bound(case: Case) -> bool:
    return case.limit_ns > case.facts["copy_ns"]


def by_class(found: list[Case]) -> list[tuple[str, str, list[Case]]]:
    """Class, type, cases."""
    groups = grouped(found, lambda case: (case.facts["type"], case.facts["class"]))
    order = {name: place for place, name in enumerate(CLASSES)}
    return [
        (CLASSES.get(name, name), kind, groups[kind, name])
        for kind, name in sorted(groups, key=lambda key: (key[0], order.get(key[1], len(order)), key[1]))
    ]


def flop_rate(case: Case) -> float:
    """GFLOP/s of the planner's kernel."""
    return case.facts["flops"] / case.chosen["ns"]


def rivals(case: Case) -> dict[str, float]:
    """The peers that contract the same tensors."""
    return {peer: ns for peer, ns in case.peers.items() if peer != PRODUCT}


def median_least_mean(values: list[float]) -> list[str]:
    return [f"{statistics.median(values):.2f}", f"{min(values):.2f}", f"{geometric_mean(values):.2f}"]


def class_table(found: list[Case]) -> list[str]:
    body = []
    for name, kind, members in by_class(found):
        forced = [case for case in members if len(case.runs) > 1]
        best = f"{geometric_mean([case.ratio(case.best) for case in forced]):.2f}" if forced else ""
        body.append(
            [
                name,
                kind,
                len(members),
                sum(map(is_compute_bound, members)),
                f"{statistics.median(map(flop_rate, members)):.0f}",
                *median_least_mean([case.ratio(case.chosen) for case in members]),
                len(forced),
                best,
            ]
        )
    header = ["class", "type", "cases", "compute-bound", "median GFLOP/s", "of roof, median", "least", "geometric mean"]
    return table([*header, "all kernels", "best of roof, geometric mean"], body, 2)


def peer_table(found: list[Case]) -> list[str]:
    body = []
    for name, kind, members in by_class(found):
        for peer in sorted({peer for case in members for peer in case.peers}):
            factors = [case.peers[peer] / case.chosen["ns"] for case in members if peer in case.peers]
            body.append(
                [name, kind, peer, len(factors), *median_least_mean(factors), sum(factor < 1 for factor in factors)]
            )
    if not body:
        return []
    lines = [f"Our speed over the peers', in the same run; `{PRODUCT}` is the matrix product of equal m, n and k:", ""]
    header = ["class", "type", "peer", "cases", "ours / peer, median", "least", "geometric mean", "slower"]
    return lines + table(header, body, 3)


def worst_table(found: list[Case]) -> list[str]:
    body = []
    for case in sorted(found, key=lambda case: case.ratio(case.chosen))[:WORST]:
        facts = case.facts
        fastest = min(rivals(case).items(), key=lambda pair: pair[1], default=None)
        body.append(
            [
                name_of(case),
                facts["modes"],
                facts["extents"],
                "arithmetic" if is_compute_bound(case) else "memory",
                short(case.chosen["kernel"]),
                f"{flop_rate(case):.0f}",
                f"{case.ratio(case.chosen):.2f}",
                f"{short(case.best['kernel'])} {case.ratio(case.best):.2f}" if len(case.runs) > 1 else "",
                f"{fastest[0]} {fastest[1] / case.chosen['ns']:.2f}" if fastest else "",
            ]
        )
    header = ["case", "d-a-b", "extents", "roof is", "chosen", "GFLOP/s", "of roof", "best", "speed over fastest peer"]
    return ["Worst cases:", ""] + table(header, body, 5)


def case_text(case: Case) -> str:
    return (
        f"{name_of(case)}: {short(case.chosen['kernel'])} {case.chosen['ns'] / 1000:.0f} us "
        f"{flop_rate(case):.0f} {case.ratio(case.chosen):.2f}"
    )


def notes(rows: list[Row], found: list[Case]) -> list[str]:
    """What was not measured, and how well what was has been checked."""
    part = of_part(rows, "contraction")
    lines = []
    left_out = grouped((name for case in found for name in case.chosen["left_out"].split()), lambda name: name)
    if left_out:
        names = ", ".join(f"{name} ({len(members)} cases)" for name, members in sorted(left_out.items()))
        lines.append(f"Never timed, as their models predict far too long: {names}.")
    for row in part:
        if "forced_cases" in row:
            lines.append(
                f"The other kernels ran in {row['forced_cases']} cases; for {row['forced_left_out']} no time was left."
            )
    runs = [run for case in found for run in case.runs.values()]
    errors = [run["worst_error"] for run in runs if run["worst_error"] is not None]
    if errors:
        sums = sum(run["sums"] for run in runs)
        lines.append(f"Checked: {sums} rows of results; the worst error is {max(errors):.2g} of what is allowed.")
    planning = [row["planning_ns"] / 1000 for row in part if "planning_ns" in row]
    if planning:
        lines.append(f"Planning took {statistics.median(planning):.0f} us in the median, {max(planning):.0f} at most.")
    return [*lines, ""]


def contraction_section(rows: list[Row]) -> list[str]:
    found = contraction_cases(rows)
    if not found:
        return []
    peaks = product_peaks(rows)
    known = ", ".join(f"{kind} {peak:.0f} GFLOP/s" for kind, peak in sorted(peaks.items()))
    lines = [
        "## Contraction",
        "",
        "The roof is the longer of two times: of moving a, b and d once as a device copy does, measured just before,",
        "and of the arithmetic at the speed of the fastest matrix product of cuBLAS in this run. 1 is as fast.",
        f"Those speeds: {known}." if known else "There was no cuBLAS: the roof is the copy's alone, for all cases.",
        "A product of complex numbers counts as 8 operations.",
        "",
    ]
    lines += class_table(found) + peer_table(found) + worst_table(found) + kernel_table(found) + notes(rows, found)
    lines += [
        "By case (chosen kernel, time, GFLOP/s, of roof):",
        "",
        "; ".join(case_text(case) for case in found) + ".",
        "",
    ]
    return lines

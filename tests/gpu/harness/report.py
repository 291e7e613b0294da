"""The dated page of results, from the rows of a run."""

import statistics
from collections.abc import Iterable

from harness.contraction_report import contraction_section
from harness.overhead_report import overhead_section, program_section
from harness.raw import Case, Row, cases, counts, geometric_mean, grouped, of_part, wrong_results
from harness.tables import kernel_table, median_least_most, name_of, short, table

# A kernel that is not chosen counts as missed when it is faster by more than this.
MISSED = 1.05


def permutation_section(rows: list[Row]) -> list[str]:
    all_cases = cases(rows, "permutation")
    if not all_cases:
        return []
    lines = [
        "## Permutation",
        "",
        "Ratios are to a device copy of as many bytes, measured just before. `chosen` is the planner's kernel, `best`",
        f"the fastest when each is forced; a case is missed when the best is more than {MISSED - 1:.0%} faster than",
        "the chosen one, so that measuring would have paid.",
        "",
    ]
    body = []
    for (suite, kind), members in sorted(grouped(all_cases, lambda c: (c.facts["suite"], c.facts["type"])).items()):
        chosen = [case.ratio(case.chosen) for case in members]
        best = [case.ratio(case.best) for case in members]
        missed = [case for case in members if case.chosen["ns"] > MISSED * case.best["ns"]]
        rate = statistics.median(case.rate(case.chosen) for case in members)
        body.append(
            [
                suite,
                kind,
                len(members),
                f"{rate:.0f}",
                *median_least_most(chosen),
                *median_least_most(best),
                len(missed),
            ]
        )
    lines += table(
        ["suite", "type", "cases", "median GB/s", "chosen", "least", "most", "best", "least", "most", "missed"], body, 2
    )
    lines += kernel_table(all_cases)
    lines += ["Slowest cases:", ""]
    slowest = sorted(all_cases, key=lambda case: case.ratio(case.chosen))[:12]
    lines += table(
        ["case", "extents", "perm", "chosen", "of copy", "best", "of copy"],
        [
            [
                name_of(case),
                case.facts["extents"],
                case.facts["perm"],
                short(case.chosen["kernel"]),
                f"{case.ratio(case.chosen):.2f}",
                short(case.best["kernel"]),
                f"{case.ratio(case.best):.2f}",
            ]
            for case in slowest
        ],
        4,
    )
    planning = [row["planning_ns"] / 1000 for row in of_part(rows, "permutation") if "planning_ns" in row]
    if planning:
        lines += [
            f"Planning took {statistics.median(planning):.0f} us in the median, {max(planning):.0f} us at most.",
            "",
        ]
    lines += [
        "By case (chosen kernel, GB/s, of copy; the best one where it is another):",
        "",
        "; ".join(case_text(case) for case in all_cases) + ".",
        "",
    ]
    return lines


def case_text(case: Case) -> str:
    text = f"{name_of(case)}: {short(case.chosen['kernel'])} {case.rate(case.chosen):.0f} {case.ratio(case.chosen):.2f}"
    if case.best is not case.chosen:
        text += f" ({short(case.best['kernel'])} {case.ratio(case.best):.2f})"
    return text


def case_section(rows: list[Row], part: str, title: str, limit: str) -> list[str]:
    all_cases = cases(rows, part)
    if not all_cases:
        return []
    lines = [f"## {title}", "", f"`of limit` is to {limit}, measured just before.", ""]
    peers = sorted({peer for case in all_cases for peer in case.peers})
    body = []
    for case in all_cases:
        best = f"{short(case.best['kernel'])} {case.ratio(case.best):.2f}"
        times = [f"{case.peers[peer] / case.chosen['ns']:.2f}" if peer in case.peers else "" for peer in peers]
        body.append(
            [
                name_of(case),
                short(case.chosen["kernel"]),
                f"{case.rate(case.chosen):.0f}",
                f"{case.ratio(case.chosen):.2f}",
                best,
                *times,
            ]
        )
    lines += table(["case", "chosen", "GB/s", "of limit", "best", *[f"speed over {peer}" for peer in peers]], body, 2)
    return lines + refusals(rows, part) + kernel_table(all_cases)


def refusals(rows: list[Row], part: str) -> list[str]:
    """Why a peer has no time for a case of a part whose cases have names."""
    refused = [row for row in of_part(rows, "peers") if row.get("of_part") == part and "refused" in row]
    lines = []
    for (peer, reason), members in grouped(refused, lambda row: (row["peer"], row["refused"])).items():
        names = ", ".join(f"{row['case']} {row['type']}" for row in members)
        lines.append(f"- {peer} has no time for {names}: {reason}.")
    return [*lines, ""] if lines else []


def model_section(rows: list[Row]) -> list[str]:
    quantities = [row for row in of_part(rows, "model") if "quantity" in row]
    if not quantities:
        return []
    body = [[row["quantity"], f"{row['value']:.4g}", row["unit"], row.get("paste", "")] for row in quantities]
    return [
        "## Model",
        "",
        "For `core/backend/cuda/gpu_model.h`; the last column says where a value belongs.",
        "",
    ] + table(["quantity", "value", "unit", "belongs to"], body)


def memory_section(rows: list[Row]) -> list[str]:
    part = of_part(rows, "memory")
    latency = [row for row in part if row.get("test") == "latency"]
    replay = [row for row in part if row.get("test") == "replay"]
    if not latency and not replay:
        return []
    lines = ["## Memory", ""]
    lines += table(
        ["source", "bytes", "allocate ns", "free ns"],
        [[r["source"], r["bytes"], f"{r['allocate_ns']:.0f}", f"{r['free_ns']:.0f}"] for r in latency],
    )
    lines += ["The same random allocations and frees:", ""]
    lines += table(
        ["source", "calls", "ns a call", "most in use", "most taken", "overhead"],
        [
            [
                r["source"],
                r["calls"],
                f"{r['ns_per_call']:.0f}",
                r["peak_used_bytes"],
                r["peak_reserved_bytes"],
                f"{r['overhead']:.2f}",
            ]
            for r in replay
        ],
    )
    lines += [f"{row['source']}: SKIPPED: {row['skipped']}." for row in part if "skipped" in row]
    return lines + [""]


def transfer_section(rows: list[Row]) -> list[str]:
    part = [row for row in of_part(rows, "transfer") if "direction" in row]
    if not part:
        return []
    body = []
    for (direction, size), members in grouped(part, lambda r: (r["direction"], r["bytes"])).items():
        rates = {row["path"]: size / row["ns"] for row in members}
        paths = [p for p in ("server", "shared") if {p, "pinned"} <= rates.keys()]
        body.append(
            [
                direction,
                size,
                *[f"{rates[p]:.2f}" if p in rates else "" for p in ("server", "shared", "pinned", "pageable")],
                " ".join(f"{rates[p] / rates['pinned']:.2f}" for p in paths),
            ]
        )
    said = "GB/s through the server, by gRPC and by shared memory, and by cudaMemcpy in one process."
    return ["## Transfers", "", said, ""] + table(
        ["direction", "bytes", "server", "shared", "pinned", "pageable", "of pinned"], body
    )


def peers_section(rows: list[Row]) -> list[str]:
    part = of_part(rows, "peers")
    if not part:
        return []
    lines = ["## Peers", ""]
    found = [case for name in ("permutation", "elementwise", "reduction") for case in cases(rows, name)]
    body = []
    # Parts without suites count as one.
    for (suite, kind), members in sorted(
        grouped(found, lambda c: (c.facts.get("suite", c.facts["part"]), c.facts["type"])).items()
    ):
        for peer in sorted({peer for case in members for peer in case.peers}):
            both = [case for case in members if peer in case.peers]
            factors = [case.peers[peer] / case.chosen["ns"] for case in both]
            of_limit = statistics.median(case.limit_ns / case.peers[peer] for case in both)
            body.append(
                [
                    suite,
                    kind,
                    peer,
                    len(both),
                    f"{of_limit:.2f}",
                    f"{geometric_mean(factors):.2f}",
                    f"{min(factors):.2f}",
                    sum(f < 1 for f in factors),
                ]
            )
    if body:
        lines += [
            "Our speed over the peer's, in the same run. The limit is a device copy that moves as many bytes;",
            "of reductions, reading the input alone. Contractions have a table of their own.",
            "",
        ]
        lines += table(
            [
                "suite or part",
                "type",
                "peer",
                "cases",
                "peer of limit, median",
                "ours / peer, geometric mean",
                "least",
                "slower",
            ],
            body,
            3,
        )
    for peer, refused in grouped((row for row in part if "refused" in row), lambda row: row["peer"]).items():
        lines.append(f"{peer}: {len(refused)} cases without a result, the first because of: {refused[0]['refused']}.")
    for row in part:
        if "skipped" in row:
            lines.append(f"{row['peer']}: SKIPPED: {row['skipped']}.")
        elif "version" in row:
            lines.append(f"{row['peer']}: version {row['version']}.")
    return lines + [""]


def conformance_section(rows: list[Row]) -> list[str]:
    lines: list[str] = []
    kernels = [row for row in of_part(rows, "conformance") if "kernel" in row]
    if kernels:
        body = []
        for kernel, members in grouped(kernels, lambda r: r["kernel"]).items():
            body.append(
                [
                    kernel,
                    sum(r["runs"] for r in members),
                    sum(r["declined"] for r in members),
                    f"{max(r['worst_error'] for r in members):.3g}",
                ]
            )
        lines += ["## Conformance", ""] + table(["kernel", "runs", "declined", "worst error, of the bound"], body)
    for part in ("conformance", "sanitizer"):
        tests = [row for row in of_part(rows, part) if "outcome" in row]
        for row in tests:
            if row["outcome"] == "failed":
                lines.append(f"FAILED: {row.get('tool', part)} {row['test']}: {row['detail']}")
    return lines + [""] if lines else []


def wrong_section(rows: list[Row]) -> list[str]:
    wrong = list(wrong_results(rows))
    if not wrong:
        return []
    body = [
        [
            row["part"],
            row.get("suite", row.get("case")),
            row.get("id", ""),
            row["type"],
            row["kernel"],
            what_is_wrong(row),
        ]
        for row in wrong
    ]
    return ["## WRONG RESULTS", ""] + table(["part", "suite or case", "id", "type", "kernel", "wrong"], body, 6)


def what_is_wrong(row: Row) -> str:
    if "wrong_sums" in row:
        return f"{row['wrong_sums']} of {row['sums']} rows of d"
    return f"{row['differing_bytes']} bytes"


def images(plots: Iterable[str], part: str) -> list[str]:
    return [f"![{name}]({name})" for name in plots if name.startswith(part)] + [""]


def page(facts: dict[str, str], parts: list[Row], rows: list[Row], plots: Iterable[str]) -> str:
    """`facts` head the page; `parts` say what became of each: part, outcome, note, seconds."""
    lines = [f"# GPU benchmarks, {facts['date']}", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items() if name != "date"] + [""]
    body = []
    for part in parts:
        done, left_out = counts(of_part(rows, part["part"]))
        body.append([part["part"], part["outcome"], part["note"], done, left_out, f"{part['seconds']:.0f}"])
    lines += table(["part", "outcome", "note", "cases", "left out for time", "s"], body, 3)
    lines += wrong_section(rows) + conformance_section(rows) + model_section(rows) + permutation_section(rows)
    lines += images(plots, "permutation")
    lines += case_section(rows, "elementwise", "Element-wise", "a device copy that moves as many bytes")
    lines += case_section(rows, "reduction", "Reduction", "reading the input alone")
    lines += images(plots, "elementwise")
    lines += contraction_section(rows) + images(plots, "contraction")
    lines += overhead_section(rows) + program_section(rows)
    lines += memory_section(rows) + transfer_section(rows) + peers_section(rows)
    return "\n".join(lines).rstrip() + "\n"

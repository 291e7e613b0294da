"""The sections on what small work costs above its kernels: single contractions, and programs of them."""

from harness.raw import Row, grouped, of_part
from harness.tables import short, table

# Of programs, in the order of the table.
WAYS = ("calls", "pipeline", "program", "prepared")


def microseconds(row: Row, key: str) -> str:
    return f"{row[key] / 1000:.2f}" if key in row else ""


def overhead_section(rows: list[Row]) -> list[str]:
    found = [row for row in of_part(rows, "overhead") if "kernel" in row]
    if not found:
        return []
    body = [
        [
            row["case"],
            short(row["kernel"]),
            "yes" if row["chosen"] else "",
            *[microseconds(row, key) for key in ("host_ns", "stream_ns", "graph_ns")],
            f"{(row['stream_ns'] - row['graph_ns']) / 1000:.2f}" if "graph_ns" in row else "",
        ]
        for row in found
    ]
    return [
        "## Overhead of a contraction",
        "",
        "Small contractions of float32 in the cache, in us. `host` is what queueing one takes of the host; `stream` the",
        "time from one to the next on a stream that is never idle, `graph` the same where they are one graph.",
        "",
        *table(["case", "kernel", "chosen", "host", "stream", "graph", "stream - graph"], body, 3),
    ]


def program_section(rows: list[Row]) -> list[str]:
    found = [row for row in of_part(rows, "program") if "way" in row]
    if not found:
        return []
    body = []
    for (shape, extent), members in grouped(found, lambda row: (row["shape"], row["extent"])).items():
        by_way = {row["way"]: row for row in members}
        prepared = by_way.get("prepared", {})
        body.append(
            [
                shape,
                extent,
                *[microseconds(by_way.get(way, {}), "ns") for way in ("one call", *WAYS)],
                microseconds(prepared, "executed_ns"),
                {True: "yes", False: "no"}.get(prepared.get("replayed"), ""),
            ]
        )
    return [
        "## Programs of small products",
        "",
        "Products of square matrices of float32 through a server on a Unix socket, in us: one as a call, and 20 as calls,",
        "in a pipeline, as the text of a program and as a prepared program; then what the device took for the last, and",
        "whether it was replayed from a recording. In a `chain` each takes the one before, `beside` none does.",
        "",
        *table(["shape", "extent", "one call", *WAYS, "prepared, device", "replayed"], body),
    ]

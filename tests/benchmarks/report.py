#!/usr/bin/env python3
"""Turns the outputs of the benchmarks into one dated page of tables.

    permutation_bench --benchmark_format=json > FOLDER/permutation.json
    contraction_bench --benchmark_format=json > FOLDER/contraction.json
    bandwidth_bench   --benchmark_format=json > FOLDER/bandwidth.json
    rpc_bench --server=PATH > FOLDER/rpc.txt
    peers.py --suite tccg --type float32 --threads 2 > FOLDER/peers.csv   # optional, and more suites appended

    report.py FOLDER > results/DATE-DEVICE.md
"""

import csv
import datetime
import json
import math
import pathlib
import statistics
import subprocess
import sys

RATIOS = ("of_copy", "of_peak", "of_read")
RATES = ("GB/s", "GFLOP/s")


def command(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def runs(folder: pathlib.Path, name: str) -> list[dict]:
    """The runs of one benchmark: name, rate and ratio."""
    loaded = json.loads((folder / f"{name}.json").read_text())["benchmarks"]
    result = []
    for run in loaded:
        parts = [p for p in run["name"].split("/") if ":" not in p and p != "manual_time"]
        rate = next(k for k in RATES if k in run)
        ratio = next(k for k in RATIOS if k in run)
        result.append({"parts": parts, "rate": run[rate], "unit": rate, "ratio": run[ratio], "of": ratio})
    return result


def print_groups(title: str, all_runs: list[dict], depth: int) -> None:
    print(f"\n## {title}\n")
    unit, of = all_runs[0]["unit"], all_runs[0]["of"]
    print(f"| group | cases | median {unit} | median {of} | least | most |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    groups: dict[str, list[dict]] = {}
    for run in all_runs:
        groups.setdefault(" ".join(run["parts"][1:depth]), []).append(run)
    for group, members in groups.items():
        ratios = [m["ratio"] for m in members]
        rate = statistics.median(m["rate"] for m in members)
        print(
            f"| {group} | {len(members)} | {rate:.1f} | {statistics.median(ratios):.2f} "
            f"| {min(ratios):.2f} | {max(ratios):.2f} |"
        )
    print("\nBy case (rate, ratio):\n")
    cases = [f"{m['parts'][-1]}: {m['rate']:.1f}, {m['ratio']:.2f}" for m in all_runs]
    print("; ".join(f"{' '.join(m['parts'][1:-1])} {c}" for m, c in zip(all_runs, cases)) + ".")


def print_peers(path: pathlib.Path, ours_by_suite: dict[str, list[dict]]) -> None:
    """Geometric means of our rate over each peer's, on the cases that both ran."""
    ours = {
        (suite, member["parts"][1], int(member["parts"][-1])): member["rate"]
        for suite, members in ours_by_suite.items()
        for member in members
    }
    factors: dict[tuple[str, str, str], list[float]] = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            key = (row["suite"], row["type"], int(row["id"]))
            if key in ours:
                factor = ours[key] / float(row["rate"])
                factors.setdefault((row["suite"], row["type"], row["peer"]), []).append(factor)
    print("\n## Against peers on the same cases\n")
    print("| suite | type | peer | cases | geometric mean of tensord / peer | least |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for (suite, kind, peer), values in factors.items():
        mean = math.exp(statistics.fmean(math.log(v) for v in values))
        print(f"| {suite} | {kind} | {peer} | {len(values)} | {mean:.2f} | {min(values):.2f} |")


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    model = next(
        line.split(":")[1].strip()
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    print(f"# CPU benchmarks, {datetime.date.today()}\n")
    print(f"Device: {model}, {command('nproc')} cores. Commit: {command('git', '-C', str(here), 'rev-parse', '--short', 'HEAD')}.")
    print("Commands: as in `tests/benchmarks/report.py`. Ratios are to limits measured in the same run:")
    print("`of_copy` a non-temporal streaming copy, `of_read` reading alone, `of_peak` a square matrix product.")
    contractions = runs(folder, "contraction")
    permutations = runs(folder, "permutation")
    print_groups("Permutation, TTC-57, float32", permutations, 3)
    print_groups("Contraction, TCCG-48", contractions, 3)
    bandwidth = runs(folder, "bandwidth")
    for of in ("of_copy", "of_read"):
        members = [m for m in bandwidth if m["of"] == of]
        print_groups(f"{members[0]['parts'][0]}, {of}", members, 99)
    if (folder / "peers.csv").exists():
        print_peers(folder / "peers.csv", {"ttc": permutations, "tccg": contractions})
    print("\n## RPC\n\n```")
    print((folder / "rpc.txt").read_text().strip())
    print("```")


if __name__ == "__main__":
    main()

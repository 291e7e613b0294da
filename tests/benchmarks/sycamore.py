#!/usr/bin/env python3
"""Single amplitudes of Sycamore: what contracting them costs, by our own trees.

Builds the network of one amplitude of 53 qubits after m cycles (two-qubit gates
as tensors of four indices of 2, one-qubit gates and ends absorbed), searches a
tree whose largest result has 2^29 elements with path_bench, and prints a line
for each m: tensors, seconds, seconds of processors, log10 of the
multiplications without slices and with them, slices, log2 of the largest
result, and what the published schemes take. Counts are this file's own.

    python3 sycamore.py --bench build/dev/bin/path_bench --seconds 60 --threads 2
    python3 sycamore.py --bench ... --cycles 20 --seconds 600 --trees results/sycamore
    python3 sycamore.py --check --trees results/sycamore

With --trees a search begins with the tree that it finds in the folder, and the
better one is kept there: an SSA path and the sliced indices, as JSON. --check
searches nothing and counts what is kept.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# log10 of multiplications: the best published without slices (kahypar and
# annealing of cotengra's authors), and the schemes with results of 2^29 that
# alibaba/acqdp ships.
PUBLISHED = {
    10: (10.30, None),
    12: (13.11, 13.34),
    14: (13.85, 14.16),
    16: (16.71, 17.36),
    18: (17.38, 17.68),
    20: (18.04, 19.12),
}
CHUNKS = 12  # of a long search, after each of which it tells how far it is


def read_patterns():
    """Pairs of qubits by pattern."""
    with open(os.path.join(HERE, "data", "sycamore53.txt"), encoding="utf-8") as lines:
        return {
            line[0]: [tuple(map(int, pair.split("-"))) for pair in line.split()[1:]]
            for line in lines
            if not line.startswith("#")
        }


def absorb(tensors):
    """Multiplies tensors of at most two indices into a neighbour."""
    tensors = list(tensors)
    at = 0
    while at < len(tensors):
        tensor = tensors[at]
        near = next((t for t in tensors if t is not tensor and t & tensor), None)
        if len(tensor) > 2 or near is None:
            at += 1
            continue
        tensors = [t for t in tensors if t is not tensor and t is not near]
        tensors.append(near ^ tensor)
        at = 0
    return tensors


def amplitude(cycles):
    """The tensors of an amplitude, as tuples of indices from 0, all of extent 2."""
    patterns = read_patterns()
    wires = [None] * 53
    gates, made = [], 0
    for cycle in range(cycles):
        for pair in patterns["ABCDCDAB"[cycle % 8]]:
            before = [wires[qubit] for qubit in pair if wires[qubit] is not None]
            after = [made, made + 1]
            made += 2
            wires[pair[0]], wires[pair[1]] = after
            gates.append(before + after)
    ends = set(wires)
    tensors = absorb({index for index in gate if index not in ends} for gate in gates)
    numbers = {
        index: number for number, index in enumerate(sorted(set().union(*tensors)))
    }
    return [tuple(sorted(numbers[index] for index in tensor)) for tensor in tensors]


def count(tensors, steps, sliced=()):
    """Multiplications of all slices, and elements of the largest result of a step.

    Raises ValueError unless each tensor and each result but the last is used once.
    """
    gone = set(sliced)
    left = {number: set(tensor) - gone for number, tensor in enumerate(tensors)}
    uses = {}
    for tensor in left.values():
        for index in tensor:
            uses[index] = uses.get(index, 0) + 1
    multiplications, largest = 0, 0
    for number, (a, b) in enumerate(steps):
        if a == b or a not in left or b not in left:
            raise ValueError(
                f"step {number} takes {a} and {b}, which are not both there"
            )
        x, y = left.pop(a), left.pop(b)
        multiplications += 2 ** len(x | y)
        summed = {index for index in x & y if uses[index] == 2}
        for index in x & y:
            uses[index] -= 1
        result = (x | y) - summed
        largest = max(largest, 2 ** len(result))
        left[len(tensors) + number] = result
    if len(left) != 1 or any(left.values()):
        raise ValueError(f"the steps leave {len(left)} tensors, wanted a number")
    return multiplications * 2 ** len(gone), largest


def text_of(cycles, tensors, kept):
    indices = 1 + max(max(tensor) for tensor in tensors)
    lines = [f"network m{cycles}", "extents" + " 2" * indices]
    lines += ["input " + " ".join(map(str, tensor)) for tensor in tensors]
    lines.append("output")
    if kept:
        lines.append("steps " + ",".join(f"{a}-{b}" for a, b in kept["steps"]))
        lines.append("sliced " + " ".join(map(str, kept["sliced"])))
    return "\n".join(lines) + "\n"


def search(args, cycles, tensors, kept, seconds, limit, seed):
    """A tree found within `seconds`, as kept in files."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text_of(cycles, tensors, kept))
        file.flush()
        line = subprocess.run(
            [args.bench, file.name, "auto", str(seconds), "-", str(limit)]
            + [str(args.threads), str(seed)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    words = line.split()
    if len(words) != 11:
        raise RuntimeError(f"path_bench says: {line.strip()}")
    steps = [list(map(int, step.split("-"))) for step in words[7].split(",")]
    sliced = [] if words[10] == "-" else list(map(int, words[10].split(",")))
    return {"cycles": cycles, "sliced": sliced, "steps": steps}


def file_of(folder, cycles):
    return os.path.join(folder, f"m{cycles}.json")


def load(folder, cycles):
    if not folder or not os.path.exists(file_of(folder, cycles)):
        return None
    with open(file_of(folder, cycles), encoding="utf-8") as file:
        return json.load(file)


def save(folder, tree):
    os.makedirs(folder, exist_ok=True)
    with open(file_of(folder, tree["cycles"]), "w", encoding="utf-8") as file:
        json.dump(tree, file, separators=(",", ":"))
        file.write("\n")


def search_on(args, cycles, tensors):
    """The best tree with slices; a long search in parts, each from where the last one ended."""
    kept = load(args.trees, cycles)
    chunk = max(args.seconds / CHUNKS, min(args.seconds, 60))
    left, part = args.seconds, 0
    while left > 0:
        kept = search(
            args, cycles, tensors, kept, min(chunk, left), args.limit, args.seed + part
        )
        left -= chunk
        part += 1
        multiplications, _ = count(tensors, kept["steps"], kept["sliced"])
        print(
            f"m={cycles}: {math.log10(multiplications):.3f}, {max(left, 0):.0f} s left",
            file=sys.stderr,
        )
        if args.trees:
            save(args.trees, kept)
    return kept


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bench", help="path_bench")
    parser.add_argument("--cycles", default="10,12,14,16,18,20")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--seed", type=int, default=0, help="another one for each search that goes on"
    )
    parser.add_argument(
        "--limit", type=int, default=29, help="log2 of the largest result"
    )
    parser.add_argument("--trees", help="folder of trees to begin with and to keep")
    parser.add_argument(
        "--unsliced", action="store_true", help="search without a limit, too"
    )
    parser.add_argument("--check", action="store_true", help="only count what is kept")
    args = parser.parse_args()
    if not args.check and not args.bench:
        parser.error("--bench is needed to search")
    print(
        f"{'m':>3} {'tensors':>7} {'seconds':>8} {'cpu':>7} {'unsliced':>8} {'published':>9}"
        f" {'sliced':>7} {'published':>9} {'slices':>6} {'largest':>7}"
    )
    for cycles in map(int, args.cycles.split(",")):
        tensors = amplitude(cycles)
        began = time.monotonic()
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        tree = (
            load(args.trees, cycles) if args.check else search_on(args, cycles, tensors)
        )
        seconds = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - spent.ru_utime - spent.ru_stime
        if tree is None:
            continue
        unsliced = "-"
        if args.unsliced and not args.check:
            whole = search(args, cycles, tensors, None, args.seconds, "-", args.seed)
            unsliced = f"{math.log10(count(tensors, whole['steps'])[0]):.2f}"
        multiplications, largest = count(tensors, tree["steps"], tree["sliced"])
        published = [
            f"{x:.2f}" if x else "-" for x in PUBLISHED.get(cycles, (None, None))
        ]
        print(
            f"{cycles:3} {len(tensors):7} {seconds:8.1f} {cpu:7.1f} {unsliced:>8} {published[0]:>9}"
            f" {math.log10(multiplications):7.2f} {published[1]:>9} {len(tree['sliced']):6}"
            f" {math.log2(largest):7.0f}",
            flush=True,
        )
        if largest > 2**args.limit:
            sys.exit(f"m={cycles}: a result has 2^{math.log2(largest):.0f} elements")


if __name__ == "__main__":
    main()

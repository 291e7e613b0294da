#!/usr/bin/env python3
"""The path search beside opt_einsum's and cotengra's, given the same time.

Generates networks, runs path_bench, opt_einsum's auto-hq and cotengra's
HyperOptimizer on them, one process each and one thread, and prints a table:
network, operands, seconds of a processor and flops relative to the best found,
of each. Flops are opt_einsum's count (PathInfo.opt_cost) of every path, its own
and the others'; where tensord's count of the same path differs a note says so.

    python3 paths.py --bench build/release/bin/path_bench --seconds 5
    python3 paths.py --bench ... --suites regular,grid --peers auto-hq --cache /tmp/peers.json
"""

import argparse
import importlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import types
import warnings

import opt_einsum as oe


def rand_equation(*args, **kwargs):
    """opt_einsum's generator of its own benchmarks; its module imports pytest without need."""
    stand_in = types.SimpleNamespace(importorskip=importlib.import_module)
    sys.modules.setdefault("pytest", stand_in)
    from opt_einsum.testing import rand_equation as generate

    return generate(*args, return_size_dict=True, **kwargs)


def parse(equation):
    inputs, output = equation.split("->")
    return [tuple(term) for term in inputs.split(",")], tuple(output)


def regular_edges(rng, n, degree):
    """Edges of a random connected graph, every node with `degree` of them."""
    while True:
        stubs = [node for node in range(n) for _ in range(degree)]
        rng.shuffle(stubs)
        edges = {tuple(sorted(pair)) for pair in zip(stubs[::2], stubs[1::2])}
        if len(edges) < n * degree // 2 or any(a == b for a, b in edges):
            continue
        seen, open_nodes = {0}, [0]
        while open_nodes:
            at = open_nodes.pop()
            for a, b in edges:
                if at in (a, b) and (other := a + b - at) not in seen:
                    seen.add(other)
                    open_nodes.append(other)
        if len(seen) == n:
            return sorted(edges)


def of_edges(n, edges, extents):
    inputs = [[] for _ in range(n)]
    sizes = {}
    for number, ends in enumerate(edges):
        symbol = oe.get_symbol(number)
        sizes[symbol] = extents(number)
        for end in ends:
            inputs[end].append(symbol)
    return [tuple(term) for term in inputs], (), sizes


def grid_edges(rows, columns, is_periodic=False):
    for row in range(rows):
        for column in range(columns):
            at = row * columns + column
            if column + 1 < columns or is_periodic:
                yield at, row * columns + (column + 1) % columns
            if row + 1 < rows or is_periodic:
                yield at, (row + 1) % rows * columns + column


def networks(suites):
    """Name, inputs, output and extents of every network."""
    if "small" in suites:
        # Of opt_einsum's tests of paths, with its extents.
        symbols = "abcdefghijklmopqABC"
        sizes = dict(
            zip(symbols, [2, 3, 4, 5, 4, 3, 2, 6, 5, 4, 3, 2, 5, 7, 4, 3, 2, 3, 4])
        )
        for equation in (
            "eb,cb,fb->cef",
            "fb,be,cdb->cef",
            "bca,cdb,dbf,afc->",
            "fce,ea,dbf->ab",
            "abc,bdf,ac,bfd->",
            "ab,bc,cd,de,ef,fg,gh,hi->ai",
            "abhe,hidj,jgba,hiab,gab->ed",
            "efc,dbc,acf,fd->abe",
            "ea,fb,abcd,gc,hd->efgh",
            "bdik,acaj,ikab,ajac,ikbd->",
        ):
            inputs, output = parse(equation)
            # No diagonals, and no indices of one operand alone: those the
            # server sums first, while opt_einsum's count knows no such step.
            terms = [set(term) for term in inputs]
            lone = {
                s for s in symbols if sum(s in term for term in [*terms, output]) == 1
            }
            inputs = [
                tuple(s for s in dict.fromkeys(term) if s not in lone)
                for term in inputs
            ]
            used = {s for term in inputs for s in term}
            yield equation, inputs, output, {s: sizes[s] for s in used}
    if "random" in suites:
        for n in (10, 16, 20, 25, 30, 40, 50, 60):
            for regularity in (3, 4, 5):
                for case in range(2):
                    options = {
                        "n_out": 2 * case,
                        "d_max": 4 if case else 9,
                        "global_dim": case == 1,
                    }
                    equation, _, sizes = rand_equation(
                        n, regularity, seed=1000 * n + case, **options
                    )
                    inputs, output = parse(equation)
                    yield f"rand_{n}_{regularity}_{case}", inputs, output, sizes
    if "regular" in suites:
        for n in (10, 20, 30, 40, 50, 60):
            for degree in (3, 4):
                for case in range(2):
                    rng = random.Random(f"{n} {degree} {case}")
                    edges = regular_edges(rng, n, degree)
                    extent = (
                        (lambda _: 2)
                        if case
                        else (lambda _, rng=rng: rng.randint(2, 8))
                    )
                    yield f"regular_{n}_{degree}_{case}", *of_edges(n, edges, extent)
    if "grid" in suites:
        for rows, columns, is_periodic in (
            (4, 4, False), (4, 4, True), (5, 5, False), (5, 6, True), (6, 6, False), (7, 7, False), (8, 8, False)
        ):  # fmt: skip
            edges = list(grid_edges(rows, columns, is_periodic))
            name = f"grid_{rows}x{columns}" + ("_periodic" if is_periodic else "")
            yield name, *of_edges(rows * columns, edges, lambda _: 4)
    if "large" in suites:
        for n, degree in ((100, 3), (200, 3), (500, 3)):
            rng = random.Random(f"{n} {degree}")
            yield f"regular_{n}_{degree}", *of_edges(
                n, regular_edges(rng, n, degree), lambda _: 2
            )
        for side in (12, 20):
            yield f"grid_{side}x{side}", *of_edges(
                side * side, list(grid_edges(side, side)), lambda _: 2
            )


def text_of(name, inputs, output, sizes, steps=None):
    numbers = {symbol: number for number, symbol in enumerate(sizes)}
    lines = [
        f"network {name}",
        "extents " + " ".join(str(extent) for extent in sizes.values()),
    ]
    lines += [
        "input " + " ".join(str(numbers[symbol]) for symbol in term) for term in inputs
    ]
    lines.append("output " + " ".join(str(numbers[symbol]) for symbol in output))
    if steps is not None:
        lines.append("steps " + ",".join(f"{a}-{b}" for a, b in steps))
    return "\n".join(lines) + "\n"


def run_bench(bench, texts, *args):
    """Results of path_bench by network: flops, log2 of the peak, seconds, steps, method."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("".join(texts))
    command = [bench, file.name, *map(str, args)]
    lines = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    os.unlink(file.name)
    results = {}
    for line in lines:
        name, method, flops, peak, milliseconds, _, _, *steps = line.split()
        results[name] = {
            "ours": float(flops),
            "peak": float(peak),
            "seconds": float(milliseconds) / 1e3,
            "steps": (
                [tuple(map(int, step.split("-"))) for step in steps[0].split(",")]
                if steps
                else []
            ),
            "method": method,
        }
    return results


def opt_cost(network, linear):
    """opt_einsum's count of a path."""
    _, inputs, output, sizes = network
    equation = ",".join("".join(term) for term in inputs) + "->" + "".join(output)
    shapes = [tuple(sizes[symbol] for symbol in term) for term in inputs]
    return float(
        oe.contract_path(equation, *shapes, shapes=True, optimize=linear)[1].opt_cost
    )


def ssa_of(linear, n):
    """Pairs of nodes of a path of positions; a step of more than two operands becomes several."""
    nodes, steps = list(range(n)), []
    for positions in linear:
        taken = [nodes[position] for position in sorted(positions)]
        nodes = [node for at, node in enumerate(nodes) if at not in positions]
        product = taken[0]
        for node in taken[1:]:
            steps.append((product, node))
            product = n + len(steps) - 1
        nodes.append(product)
    return steps


def auto_hq(inputs, output, sizes, seconds):
    """opt_einsum's auto-hq, whose time is its own: 128 trials at random or dynamic programming."""
    return oe.paths.auto_hq(
        [frozenset(term) for term in inputs], frozenset(output), sizes
    )


def cotengra(inputs, output, sizes, seconds):
    """cotengra's default: trials with reconfiguration, as many as the time allows, on one thread."""
    import cotengra as ctg

    optimizer = ctg.HyperOptimizer(
        max_time=seconds, max_repeats=10**9, parallel=False, progbar=False
    )
    return optimizer(inputs, output, sizes)


PEERS = {"auto-hq": auto_hq, "cotengra": cotengra}


def run_peer(peer, network, seconds, cache):
    name, inputs, output, sizes = network
    key = f"{peer} {name} {seconds if peer != 'auto-hq' else ''}"
    if key not in cache:
        random.seed(0)
        begun = time.process_time()
        linear = PEERS[peer](inputs, output, sizes, seconds)
        elapsed = time.process_time() - begun
        cache[key] = {
            "seconds": elapsed,
            "opt_cost": opt_cost(network, linear),
            "steps": ssa_of(linear, len(inputs)),
        }
    return cache[key]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bench", required=True, help="path_bench")
    parser.add_argument("--suites", default="small,random,regular,grid")
    parser.add_argument("--peers", default="auto-hq,cotengra")
    parser.add_argument(
        "--seconds",
        type=float,
        default=5.0,
        help="of search, for cotengra and beside it",
    )
    parser.add_argument("--method", default="auto", help="tensord's")
    parser.add_argument("--cache", help="keeps the peers' results in this file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    peers = args.peers.split(",")
    cache = {}
    if args.cache and os.path.exists(args.cache):
        with open(args.cache) as file:
            cache = json.load(file)

    print("flops relative to the best found, and seconds of search")
    print(
        "default: tensord in its own time; same: in as much as auto-hq took; long: in --seconds"
    )
    columns = ["default", "same", "long", *peers]
    print(
        f"{'network':28} {'n':>3} {'log2 best':>9}",
        *(f"{column:>18}" for column in columns),
    )
    ratios = {column: [] for column in columns}
    worse = []
    for network in networks(args.suites.split(",")):
        name, inputs, output, sizes = network
        found = {peer: run_peer(peer, network, args.seconds, cache) for peer in peers}
        if args.cache:
            with open(args.cache, "w") as file:
                json.dump(cache, file)
        text = text_of(*network)
        budgets = {"default": 0, "long": args.seconds}
        if "auto-hq" in found:
            budgets["same"] = max(found["auto-hq"]["seconds"], 1e-3)
        for column, budget in budgets.items():
            result = run_bench(args.bench, [text], args.method, budget)[name]
            result["opt_cost"] = opt_cost(
                network, oe.paths.ssa_to_linear(result["steps"])
            )
            found[column] = result
        for column, result in found.items():
            if "ours" not in result:
                given = text_of(*network, steps=result["steps"])
                result["ours"] = run_bench(args.bench, [given], "given")[name]["ours"]
        least = min(result["opt_cost"] for result in found.values())
        cells = []
        for column in columns:
            if column not in found:
                cells.append("-")
                continue
            ratio = found[column]["opt_cost"] / least
            ratios[column].append(ratio)
            cells.append(f"{ratio:9.4f} {found[column]['seconds']:7.4f}s")
        marks = ""
        for peer in peers:
            for column in budgets:
                for count in ("opt_cost", "ours"):
                    if found[column][count] > found[peer][count] * (1 + 1e-9):
                        worse.append(
                            (
                                name,
                                column,
                                peer,
                                count,
                                found[column][count] / found[peer][count],
                            )
                        )
                        marks = " <"
        print(
            f"{name:28} {len(inputs):3} {math.log2(least):9.2f}",
            *(f"{cell:>18}" for cell in cells),
            marks,
            flush=True,
        )
    means = [
        math.exp(sum(map(math.log, ratios[c])) / max(len(ratios[c]), 1))
        for c in columns
    ]
    print(f"{'geometric mean':42}", *(f"{mean:9.4f}         " for mean in means))
    for name, column, peer, count, ratio in worse:
        print(
            f"above: {name} {column} has {ratio:.5f} of the flops of {peer} by {count}"
        )


if __name__ == "__main__":
    main()

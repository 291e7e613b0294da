#!/usr/bin/env python3
"""NumPy and PyTorch on the cases of contraction_bench and permutation_bench.

Prints CSV: suite, id, element type, peer, GFLOP/s (contractions) or GB/s read
plus written (permutations), the ratio to the limit that the same peer's machine
has (a square matrix product, a contiguous copy), best of the repetitions.

    python3 peers.py --suite tccg --type float32 --threads 2 > peers.csv

A peer that is not installed is named on stderr and left out.
"""

import argparse
import csv
import math
import os
import pathlib
import sys
import time

DATA = pathlib.Path(__file__).parent / "data"


def choose_openblas_kernels():
    """OpenBLAS goes by model numbers; take what the CPU's flags allow instead."""
    try:
        flags = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return
    flags = set(flags[flags.find("flags") :].split("\n", 1)[0].split())
    if {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"} <= flags:
        core = "Cooperlake" if "avx512_bf16" in flags else "SkylakeX"
    elif {"avx2", "fma"} <= flags:
        core = "Haswell"
    else:
        return
    os.environ.setdefault("OPENBLAS_CORETYPE", core)


def scaled(case_id, extents):
    """The scaling of contraction_bench: no case takes seconds."""
    if case_id != 12 and not 20 <= case_id <= 30:
        return extents
    smaller = {72: 56, 84: 56, 96: 64, 7240: 3072, 7248: 3072, 5120: 2048, 5136: 2048}
    return {label: smaller.get(extent, extent) for label, extent in extents.items()}


def rows(name):
    with open(DATA / name, newline="") as file:
        yield from csv.DictReader(line for line in file if not line.startswith("#"))


def tccg_cases(type_name):
    column = "extents_f32" if type_name == "float32" else "extents_f64"
    for row in rows("tccg48.csv"):
        extents = dict(pair.split(":") for pair in row[column].split())
        extents = scaled(int(row["id"]), {k: int(v) for k, v in extents.items()})
        yield row["id"], row["einsum_rowmajor"], extents


def ttc_cases():
    for row in rows("ttc57.csv"):
        extents = [int(x) for x in row["extents"].split()]
        perm = [int(x) for x in row["perm"].split()]
        rank = len(extents)
        # Row-major: everything reversed.
        yield row["id"], extents[::-1], [rank - 1 - p for p in reversed(perm)]


def best_seconds(function, min_seconds=0.3):
    function()
    best, start = math.inf, time.perf_counter()
    while True:
        begin = time.perf_counter()
        function()
        end = time.perf_counter()
        best = min(best, end - begin)
        if end - start > min_seconds:
            return best


class NumpyPeer:
    name = "numpy"

    def __init__(self, threads):
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
        import numpy

        self.numpy = numpy

    def ones(self, shape, type_name):
        return self.numpy.ones(shape, dtype=type_name)

    def einsum(self, text, a, b):
        # A view with permuted strides is no result yet.
        return self.numpy.ascontiguousarray(
            self.numpy.einsum(text, a, b, optimize=True)
        )

    def permute_into(self, out, a, perm):
        self.numpy.copyto(out, a.transpose(perm))


class TorchPeer:
    name = "torch"

    def __init__(self, threads):
        import torch

        self.torch = torch
        torch.set_num_threads(threads)

    def ones(self, shape, type_name):
        return self.torch.ones(tuple(shape), dtype=getattr(self.torch, type_name))

    def einsum(self, text, a, b):
        return self.torch.einsum(text, a, b).contiguous()

    def permute_into(self, out, a, perm):
        out.copy_(a.permute(perm))


def run_tccg(peer, type_name, writer):
    square = peer.ones((2048, 2048), type_name)
    seconds = best_seconds(lambda: peer.einsum("ij,jk->ik", square, square))
    peak = 2 * 2048**3 / seconds
    for case_id, text, extents in tccg_cases(type_name):
        inputs = text.split("->")[0].split(",")
        a, b = (
            peer.ones([extents[label] for label in labels], type_name)
            for labels in inputs
        )
        flops = 2 * math.prod(extents.values())
        seconds = best_seconds(lambda: peer.einsum(text, a, b))
        rate = flops / seconds
        writer.writerow(
            ["tccg", case_id, type_name, peer.name, f"{rate / 1e9:.2f}", f"{rate / peak:.3f}"]
        )
        sys.stdout.flush()


def run_ttc(peer, type_name, writer):
    source = peer.ones((52_428_800,), type_name)
    target = peer.ones((52_428_800,), type_name)
    element_bytes = 4 if type_name == "float32" else 8
    seconds = best_seconds(lambda: peer.permute_into(target, source, [0]))
    limit = 2 * element_bytes * 52_428_800 / seconds
    del source, target
    for case_id, extents, perm in ttc_cases():
        a = peer.ones(extents, type_name)
        out = peer.ones([extents[p] for p in perm], type_name)
        seconds = best_seconds(lambda: peer.permute_into(out, a, perm))
        rate = 2 * element_bytes * math.prod(extents) / seconds
        writer.writerow(
            ["ttc", case_id, type_name, peer.name, f"{rate / 1e9:.2f}", f"{rate / limit:.3f}"]
        )
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--suite", choices=["tccg", "ttc"], default="tccg")
    parser.add_argument("--type", choices=["float32", "float64"], default="float32")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    choose_openblas_kernels()
    writer = csv.writer(sys.stdout)
    writer.writerow(["suite", "id", "type", "peer", "rate", "of_limit"])
    for create in (NumpyPeer, TorchPeer):
        try:
            peer = create(arguments.threads)
        except ImportError as error:
            print(f"{create.name}: left out: {error}", file=sys.stderr)
            continue
        if arguments.suite == "tccg":
            run_tccg(peer, arguments.type, writer)
        else:
            run_ttc(peer, arguments.type, writer)


if __name__ == "__main__":
    main()

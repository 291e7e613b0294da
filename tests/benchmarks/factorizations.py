#!/usr/bin/env python3
"""What factorizations cost, beside LAPACK's own through NumPy, on one thread each.

Prints a table: method, extents, type, milliseconds on the server (resident operand, waited
for), milliseconds of NumPy, and their ratio.

    OPENBLAS_NUM_THREADS=1 python3 factorizations.py --server build/release/bin/tensord
"""

import argparse
import os
import statistics
import time

import numpy as np
import tensord

CASES = [
    ("svd", "ij->ik,k,kj", (64, 64), np.linalg.svd),
    ("svd", "ij->ik,k,kj", (256, 256), np.linalg.svd),
    ("svd", "ij->ik,k,kj", (1000, 1000), np.linalg.svd),
    ("svd", "ij->ik,k,kj", (2000, 200), np.linalg.svd),
    ("qr", "ij->ik,kj", (1000, 1000), np.linalg.qr),
    ("eigh", "ij->k,ik", (500, 500), np.linalg.eigh),
    ("cholesky", "ij->ik", (1000, 1000), np.linalg.cholesky),
]


def matrix(method, shape, dtype):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * rng.standard_normal(shape)
    if method in ("eigh", "cholesky"):
        a = a @ a.conj().T + np.eye(shape[0])
    return a.astype(dtype)


def seconds(function):
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", help="the program; else $TENSORD_SERVER or that of the PATH")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        parser.error("set OPENBLAS_NUM_THREADS=1, for NumPy's threads")
    if options.server:
        os.environ["TENSORD_SERVER"] = os.path.abspath(options.server)
    print("| method | extents | type | tensord ms | NumPy ms | ratio |\n|---|---|---|---|---|---|")
    with tensord.serve(threads=1) as address, tensord.connect(address) as session:
        for method, subscripts, shape, peer in CASES:
            for dtype in (np.float64, np.complex64):
                a = matrix(method, shape, dtype)
                measure(session, method, subscripts, a, peer, options)


def measure(session, method, subscripts, a, peer, options):
    thin = {"full_matrices": False} if method == "svd" else {}
    resident = session.upload(a)
    pairs = [
        (
            seconds(lambda: session.factorize(subscripts, resident, method=method)),
            seconds(lambda: peer(a, **thin)),
        )
        for _ in range(options.rounds + 1)
    ][1:]
    ours, theirs = (statistics.median(each) for each in zip(*pairs))
    ratio = statistics.median(x / y for x, y in pairs)
    extents = " x ".join(map(str, a.shape))
    print(
        f"| {method} | {extents} | {a.dtype} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} "
        f"| {ratio:.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()

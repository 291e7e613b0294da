#!/usr/bin/env python3
"""What factorizations, equations and exponentials cost, beside LAPACK's through NumPy and SciPy.

Both sides have as many threads as OPENBLAS_NUM_THREADS says. Prints a table: method,
extents, type, milliseconds on the server (resident operands, waited for), milliseconds of
the peer, and their ratio.

    OPENBLAS_NUM_THREADS=1 python3 factorizations.py --server build/release/bin/tensord
"""

import argparse
import os
import statistics
import time
from functools import partial

import numpy as np
import scipy.linalg
import tensord
from scipy.linalg import solve_triangular

# Method, subscripts, extents, the peer, and of a truncated SVD its rank.
FACTORIZATIONS = [
    ("svd", "ij->ik,k,kj", (64, 64), np.linalg.svd),
    ("svd", "ij->ik,k,kj", (256, 256), np.linalg.svd),
    ("svd", "ij->ik,k,kj", (1000, 1000), np.linalg.svd),
    ("svd", "ij->ik,k,kj", (1000, 1000), np.linalg.svd, 100),
    ("svd", "ij->ik,k,kj", (2000, 200), np.linalg.svd),
    ("qr", "ij->ik,kj", (1000, 1000), np.linalg.qr),
    ("eigh", "ij->k,ik", (500, 500), np.linalg.eigh),
    ("cholesky", "ij->ik", (1000, 1000), np.linalg.cholesky),
]

# Extents of matrices, and how many values of an SVD a random sample finds.
SAMPLED = [
    ((128, 128), 16),
    ((1000, 1000), 20),
    ((1000, 1000), 100),
    ((4000, 1000), 50),
]

# Extents of matrices whose exponentials are computed, and their spectral radius.
EXPONENTIALS = [
    ((1000, 4, 4), 1),
    ((64, 64), 1),
    ((256, 256), 5),
    ((1000, 1000), 5),
]

# Structure, extents of the matrices, right sides (0: the inverse), the peer.
EQUATIONS = [
    ("general", (64, 64), 1, np.linalg.solve),
    ("general", (1000, 1000), 1, np.linalg.solve),
    ("general", (2000, 2000), 2000, np.linalg.solve),
    ("general", (1000, 1000), 0, np.linalg.inv),
    ("general", (5000, 8, 8), 8, np.linalg.solve),
    ("hermitian", (1000, 1000), 1, partial(scipy.linalg.solve, assume_a="her")),
    ("positive_definite", (1000, 1000), 1, partial(scipy.linalg.solve, assume_a="pos")),
    ("lower_triangular", (2000, 2000), 2000, partial(solve_triangular, lower=True)),
]


def matrix(structure, shape, dtype):
    rng = np.random.default_rng(0)
    a = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        a = a + 1j * rng.standard_normal(shape)
    if structure in ("eigh", "cholesky", "hermitian", "positive_definite"):
        a = a @ a.conj().T + np.eye(shape[0])
    if structure == "lower_triangular":
        a = np.tril(a) / shape[0] + np.eye(shape[0])
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
    threads = int(os.environ.get("OPENBLAS_NUM_THREADS", "0"))
    if threads < 1:
        parser.error("set OPENBLAS_NUM_THREADS, for the peers' threads")
    if options.server:
        os.environ["TENSORD_SERVER"] = os.path.abspath(options.server)
    print("| method | extents | type | tensord ms | peer ms | ratio |\n|---|---|---|---|---|---|")
    with tensord.serve(threads=threads) as address, tensord.connect(address) as session:
        for dtype in (np.float64, np.complex64):
            for case in FACTORIZATIONS:
                factorize(session, dtype, options.rounds, *case)
            for case in SAMPLED:
                sample(session, *case, dtype, options.rounds)
            for case in EQUATIONS:
                solve(session, *case, dtype, options.rounds)
            for case in EXPONENTIALS:
                exponentiate(session, *case, dtype, options.rounds)


def factorize(session, dtype, rounds, method, subscripts, shape, peer, rank=None):
    a = matrix(method, shape, dtype)
    thin = {"full_matrices": False} if method == "svd" else {}
    resident = session.upload(a)
    compare(
        f"{method}{f', rank {rank}' * bool(rank)} | "
        f"{' x '.join(map(str, shape))} | {a.dtype}",
        lambda: session.factorize(subscripts, resident, method=method, rank=rank),
        lambda: peer(a, **thin),
        rounds,
    )


def sample(session, shape, rank, dtype, rounds):
    a = matrix("svd", shape, dtype)
    resident = session.upload(a)
    compare(
        f"svd, rank {rank}, randomized | {' x '.join(map(str, shape))} | {a.dtype}",
        lambda: session.factorize(
            "ij->ik,k,kj", resident, method="svd", rank=rank, randomized=True
        ),
        lambda: randomized_svd(a, rank),
        rounds,
    )


def randomized_svd(a, rank, oversampling=10, power_iterations=2):
    """The same algorithm in NumPy."""
    columns = np.random.default_rng(0).standard_normal((a.shape[1], rank + oversampling))
    basis = np.linalg.qr(a @ columns.astype(a.dtype))[0]
    for _ in range(power_iterations):
        other = np.linalg.qr(a.conj().T @ basis)[0]
        basis = np.linalg.qr(a @ other)[0]
    u, s, v = np.linalg.svd(basis.conj().T @ a, full_matrices=False)
    return basis @ u[:, :rank], s[:rank], v[:rank]


def exponentiate(session, shape, radius, dtype, rounds):
    a = matrix("general", shape, dtype) * np.asarray(radius / np.sqrt(shape[-1]), dtype)
    resident = session.upload(a)
    text = "nij->nik" if len(shape) == 3 else "ij->ik"
    compare(
        f"expm, radius {radius} | {' x '.join(map(str, shape))} | {a.dtype}",
        lambda: session.expm(text, resident),
        lambda: scipy.linalg.expm(a),
        rounds,
    )


def solve(session, structure, shape, sides, peer, dtype, rounds):
    a = matrix(structure, shape, dtype)
    arrays = [a]
    if sides:
        arrays.append(matrix("general", (*shape[:-1], sides), dtype))
    resident = [session.upload(array) for array in arrays]
    text = "...ij,...ik->...jk" if sides else "...ij->...jk"
    text = text.replace("...", "n" * (len(shape) - 2))
    compare(
        f"{'solve' if sides else 'inverse'}, {structure} | "
        f"{' x '.join(map(str, shape))}, {sides or shape[-1]} sides | {a.dtype}",
        lambda: session.solve(text, *resident, structure=structure),
        lambda: peer(*arrays),
        rounds,
    )


def compare(name, ours, theirs, rounds):
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds + 1)][1:]
    ratio = statistics.median(x / y for x, y in pairs)
    mine, peers = (1e3 * statistics.median(each) for each in zip(*pairs))
    print(f"| {name} | {mine:.2f} | {peers:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()

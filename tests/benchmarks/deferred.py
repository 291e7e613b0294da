"""What a small einsum of resident operands costs in Python: awaited, in a pipeline, deferred,
recorded; and what it costs with its value, or twenty of them with the last one's.

Rounds of all by turns, against a server of its own; NumPy's is the same product here.

    build/venv/bin/python tests/benchmarks/deferred.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import tensord

COUNT = 1000
EXTENT = 8


def microseconds(run: Callable[[], object]) -> float:
    """Time of one of the COUNT operations of a run."""
    begun = time.perf_counter()
    run()
    return (time.perf_counter() - begun) / COUNT * 1e6


def chain(
    session: tensord.Session, a: tensord.RemoteTensor, length: int = COUNT
) -> np.ndarray:
    for _ in range(COUNT // length):
        product = a
        for _ in range(length):
            product = session.einsum("ij,jk->ik", product, a)
        value = product.numpy()
    return value


def piped(session: tensord.Session, a: tensord.RemoteTensor) -> np.ndarray:
    places = [session.upload(np.eye(EXTENT)) for _ in range(2)]
    with session.pipeline() as pipeline:
        for i in range(COUNT):
            pipeline.einsum("ij,jk->ik", places[i % 2], a, out=places[1 - i % 2])
    return places[COUNT % 2].numpy()


def here(a: np.ndarray) -> np.ndarray:
    product = a
    for _ in range(COUNT):
        product = np.einsum("ij,jk->ik", product, a)
    return product


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    times: dict[str, list[float]] = {}
    with tensord.serve() as address:
        with (
            tensord.connect(address) as session,
            tensord.connect(address, deferred=True) as later,
            tensord.connect(address, recorded=True) as last,
        ):
            eye = np.eye(EXTENT)
            a, b, c = (each.upload(eye) for each in (session, later, last))
            ways: dict[str, Callable[[], np.ndarray]] = {
                "awaited": lambda: chain(session, a),
                "pipeline": lambda: piped(session, a),
                "deferred": lambda: chain(later, b),
                "recorded": lambda: chain(last, c),
                "awaited, value": lambda: chain(session, a, 1),
                "deferred, value": lambda: chain(later, b, 1),
                "recorded, value": lambda: chain(last, c, 1),
                "awaited, 20": lambda: chain(session, a, 20),
                "deferred, 20": lambda: chain(later, b, 20),
                "recorded, 20": lambda: chain(last, c, 20),
                "numpy.einsum": lambda: here(eye),
            }
            for way, run in ways.items():
                assert np.array_equal(run(), eye), way
            for _ in range(rounds):
                for way, run in ways.items():
                    times.setdefault(way, []).append(microseconds(run))
    for way, each in times.items():
        low, middle, high = statistics.quantiles(each, n=4)
        ratio = statistics.median(x / y for x, y in zip(each, times["awaited"]))
        print(f"{way:15} {middle:7.1f} us [{low:.1f} - {high:.1f}], {ratio:.2f} of awaited")


if __name__ == "__main__":
    main()

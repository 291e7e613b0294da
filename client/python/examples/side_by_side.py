"""An amplitude of a quantum circuit on a tensord server and on NumPy, side by side.

NumPy's own einsum takes no such sum; opt_einsum finds it an order and has NumPy contract
two tensors at a time, on the same cores.
"""

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Iterator
import numpy as np
import opt_einsum
import tensord
from circuit import TENSORS, network, random_bits, random_circuit


class Progress:
    """A bar on a terminal, while something takes its time; else nothing."""

    WIDTH = 30

    def __init__(self, what: str) -> None:
        self.share = 0.0  # done, where that is known
        self._what, self._begun = what, time.perf_counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw)

    def __enter__(self) -> "Progress":
        if sys.stdout.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
            print("\r\033[K", end="")

    def _draw(self) -> None:
        while not self._over.wait(0.1):
            done = "#" * round(self.WIDTH * self.share)
            bar = f"[{done:{self.WIDTH}}]" if done else "." * (self.WIDTH + 2)
            seconds = time.perf_counter() - self._begun
            print(f"\r{self._what:24} {bar} {seconds:5.1f} s", end="", flush=True)


@contextlib.contextmanager
def timed(times: dict[str, float], name: str) -> Iterator[None]:
    begun = time.perf_counter()
    yield
    times[name] = time.perf_counter() - begun


def by_opt_einsum(
    subscripts: str, arrays: list[np.ndarray], times: dict[str, float]
) -> tuple[complex, float]:
    """The sum, and the bytes of its largest intermediate result."""
    with Progress("opt_einsum: an order"), timed(times, "search"):
        _, info = opt_einsum.contract_path(subscripts, *arrays, optimize="auto-hq")
    arrays = list(arrays)
    with Progress("opt_einsum on NumPy") as progress:
        for k, (pair, _, terms, *_) in enumerate(info.contraction_list):
            taken = [arrays.pop(at) for at in sorted(pair, reverse=True)]
            arrays.append(opt_einsum.contract(terms, *taken))
            progress.share = (k + 1) / len(info.contraction_list)
    largest = float(info.largest_intermediate) * arrays[0].itemsize
    return complex(arrays[0]), largest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6, help="of qubits")
    parser.add_argument("--columns", type=int, default=6)
    parser.add_argument("--cycles", type=int, default=8)
    parser.add_argument("--memory-mib", type=int, default=8, help="for intermediates")
    parser.add_argument("--address", help="of a server; by default a private one")
    args = parser.parse_args()
    qubit_count = args.rows * args.columns
    gates = list(random_circuit(args.rows, args.columns, args.cycles, 2019))
    subscripts, names = network(gates, random_bits(qubit_count, 2020))
    tensors = {name: t.astype("complex64") for name, t in TENSORS.items()}
    arrays = [tensors[name] for name in names]
    print(f"One sum over {len(names)} tensors: an amplitude of {qubit_count} qubits.")
    times: dict[str, float] = {}
    limit = args.memory_mib << 20
    server = contextlib.nullcontext(args.address) if args.address else tensord.serve()
    with server as at, tensord.connect(at, job="side by side", timeout=600) as session:
        remote = {name: session.upload(t) for name, t in tensors.items()}
        with Progress("tensord"), timed(times, "tensord"):
            operands = [remote[name] for name in names]
            ours = complex(session.einsum(subscripts, *operands, memory_limit=limit))
    try:
        np.einsum(subscripts, *arrays)
    except ValueError as refusal:
        print(f"numpy.einsum: {refusal}")
    with timed(times, "opt_einsum"):
        theirs, largest = by_opt_einsum(subscripts, arrays, times)
    print(f"{'':12} {'amplitude':>28} {'results within':>14} {'time':>9}")
    for name, value, mib in (
        ("tensord", ours, args.memory_mib),
        ("opt_einsum", theirs, largest / 2**20),
    ):
        print(f"{name:12} {value:>28.6e} {mib:>10.0f} MiB {times[name]:>7.2f} s")
    ratio = times["opt_einsum"] / times["tensord"]
    print(f"tensord is {ratio:.1f} times as fast, searches for an order included;")
    print(f"opt_einsum's took {times['search']:.2f} s of its time.")
    # Two results in single precision; an amplitude is of the size of 2^(-n/2).
    error = abs(ours - theirs) * 2 ** (qubit_count / 2)
    bound = 2 * len(gates) * np.finfo("float32").eps
    if error <= bound:
        return 0
    print(f"The amplitudes differ by {error:.1e} of their size, wanted {bound:.1e}.")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

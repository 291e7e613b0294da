"""What the Python client costs beside the C++ one: calls, transfers, and many small sums.

Rounds by turns of the C++ client (`client_bench`), the native core and grpcio, against
one server of its own; ratios are medians of those of the rounds.

    build/venv/bin/python tests/benchmarks/python_native.py [ROUNDS] [auto|grpc]

The last says how transfers go, on both sides; `auto` is by shared memory.
`--figures ADDRESS` prints those of one implementation, one a line.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tensord

CLIENT_BENCH = Path(__file__).resolve().parents[2] / "build/dev/bin/client_bench"
CALLS = 1000
TRANSFERS = 25
SIZES = [mebibytes << 20 for mebibytes in (1, 8, 64)]
ITERATIONS = 15

# The contractions of two operands in an iteration of CCSD over spin orbitals, with the
# intermediates of Stanton, Gauss, Watts and Bartlett (J. Chem. Phys. 94, 4334): water in
# a minimal basis has ten occupied ones, i to o, and four virtual ones, a to h.
SUMS = """
ia,jb->ijab ia,jb->ijab me,ma->ae mf,mafe->ae mnaf,mnef->ae me,ie->mi ne,mnie->mi
inef,mnef->mi nf,mnef->me je,mnie->mnij ie,mnje->mnij ijef,mnef->mnij mb,amef->abef
ma,bmef->abef mnab,mnef->abef jf,mbef->mbej nb,mnej->mbej jnfb,mnef->mbej
jf,nb->jnfb ie,ae->ia ma,mi->ia imae,me->ia nf,naif->ia imef,maef->ia mnae,nmei->ia
ijae,be->ijab mb,me->be ijae,be->ijab ijbe,ae->ijab ma,me->ae ijbe,ae->ijab
imab,mj->ijab je,me->jm imab,jm->ijab jmab,mi->ijab ie,me->im jmab,im->ijab
mnab,mnij->ijab ijef,abef->ijab imae,mbej->ijab ie,ma->imea imea,mbej->ijab
jmae,mbei->ijab je,ma->jmea jmea,mbei->ijab imbe,maej->ijab ie,mb->imeb
imeb,maej->ijab jmbe,maei->ijab je,mb->jmeb jmeb,maei->ijab ie,abej->ijab
je,abei->ijab ma,mbij->ijab mb,maij->ijab ia,ia-> ijab,ijab-> ia,jb->ijab
ijab,ijab->
me,ma->ae mf,mafe->ae mnaf,mnef->ae me,ie->mi ne,mnie->mi inef,mnef->mi nf,mnef->me
je,mnie->mnij ijef,mnef->mnij mb,amef->abef mnab,mnef->abef jf,mbef->mbej
nb,mnej->mbej jnfb,mnef->mbej ie,ae->ia ma,mi->ia imae,me->ia nf,naif->ia
imef,maef->ia mnae,nmei->ia ijae,be->ijab imab,mj->ijab mnab,mnij->ijab
ijef,abef->ijab
""".split()


def microseconds(run: Callable[[], object]) -> float:
    """Median time of one of CALLS calls."""
    times = []
    for _ in range(CALLS):
        begun = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - begun)
        del kept
    return statistics.median(times) * 1e6


def bytes_per_second(size: int, run: Callable[[], object]) -> float:
    """Median speed; what was made is deleted by a call in between, as in C++."""
    times = []
    for _ in range(TRANSFERS):
        begun = time.perf_counter()
        kept = run()
        times.append(time.perf_counter() - begun)
        if isinstance(kept, tensord.RemoteTensor):
            kept.delete()
        del kept
    return size / statistics.median(times)


def operands() -> list[tuple[str, tuple[np.ndarray, ...]]]:
    """The sums of an iteration, and arrays for them; equal shapes are one array."""
    rng = np.random.default_rng(7)
    arrays: dict[tuple[int, ...], np.ndarray] = {}
    sums = []
    for text in SUMS:
        labels = text.partition("->")[0].split(",")
        shapes = [tuple(4 if label < "i" else 10 for label in each) for each in labels]
        for shape in shapes:
            if shape not in arrays:
                arrays[shape] = rng.standard_normal(shape)
        sums.append((text, tuple(arrays[shape] for shape in shapes)))
    return sums


def coupled_cluster(einsum: Callable[..., object], sums: list, wait: Callable) -> float:
    """Seconds for as many iterations as a run takes; each is waited for."""
    begun = time.perf_counter()
    for _ in range(ITERATIONS):
        kept = [einsum(text, *each) for text, each in sums]
        wait()
        del kept
    return time.perf_counter() - begun


def deferred_chain(session: tensord.Session, a: tensord.RemoteTensor) -> float:
    """Time of one of CALLS sums that follow each other, the last one looked at."""
    product = a
    begun = time.perf_counter()
    for _ in range(CALLS):
        product = session.einsum("ij,jk->ik", product, a)
    product.numpy()
    return (time.perf_counter() - begun) / CALLS * 1e6


def figures(address: str) -> None:
    """Prints what this implementation takes."""
    eye = np.eye(8)
    with tensord.connect(address) as session:
        a = session.upload(eye)
        print("resident", microseconds(lambda: session.einsum("ij,jk->ik", a, a)))
        print(
            "inline",
            microseconds(lambda: session.einsum("ij,jk->ik", eye, eye).numpy()),
        )
        for size in SIZES:
            source = np.resize(np.arange(251, dtype=np.int8), size)
            speed = bytes_per_second(size, lambda: session.upload(source))
            print(f"upload_{size}", speed)
            tensor = session.upload(source)
            print(f"download_{size}", bytes_per_second(size, tensor.numpy))
            assert np.array_equal(tensor.numpy(), source)
            del tensor
    with tensord.connect(address, deferred=True) as later:
        a = later.upload(eye)
        deferred_chain(later, a)
        print("deferred", deferred_chain(later, a))
        sums = operands()
        wanted = [np.einsum(text, *each) for text, each in sums]
        there = {id(each): later.upload(each) for _, pair in sums for each in pair}
        remote = [(text, [there[id(each)] for each in pair]) for text, pair in sums]
        got = [later.einsum(text, *pair) for text, pair in remote]
        for mine, its in zip(wanted, got):
            np.testing.assert_allclose(its.numpy(), mine, rtol=1e-9, atol=1e-9)
        here = coupled_cluster(np.einsum, sums, lambda: None)
        print("coupled_cluster", coupled_cluster(later.einsum, remote, later.wait))
        print("numpy", here)


def measured(command: list[str], implementation: str) -> dict[str, float]:
    environment = os.environ | {"TENSORD_IMPLEMENTATION": implementation}
    said = subprocess.run(
        command, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    lines = (line.split() for line in said.stdout.splitlines())
    return {name: float(value) for name, value in lines}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    transport = sys.argv[2] if len(sys.argv) > 2 else "auto"
    os.environ["TENSORD_TRANSPORT"] = transport
    assert len(SUMS) * ITERATIONS == 1245, len(SUMS)
    runs: dict[str, list[dict[str, float]]] = {"C++": [], "native": [], "grpcio": []}
    with tensord.serve() as address:
        for _ in range(rounds):
            bench = [str(CLIENT_BENCH), address, transport]
            runs["C++"].append(measured(bench, "grpcio"))
            for way in "native", "grpcio":
                command = [sys.executable, __file__, "--figures", address]
                runs[way].append(measured(command, way))
    print(f"medians of {rounds} rounds; ratios are medians of those of rounds\n")
    print("| what | C++ | native | grpcio | native / C++ | grpcio / C++ |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in runs["native"][0]:
        if name == "numpy":
            continue
        base = runs["native" if name == "coupled_cluster" else "C++"]
        basis = "numpy" if name == "coupled_cluster" else name
        cells = []
        for way in "C++", "native", "grpcio":
            each = base if way == "C++" else runs[way]
            key = basis if way == "C++" else name
            values = [run[key] for run in each if key in run]
            cells.append(shown(name, statistics.median(values)) if values else "")
        for way in "native", "grpcio":
            ratios = [
                mine[name] / its[basis]
                for mine, its in zip(runs[way], runs[way] if basis == "numpy" else base)
                if basis in its
            ]
            cells.append(f"{statistics.median(ratios):.2f}" if ratios else "")
        print(f"| {name} | " + " | ".join(cells) + " |")


def shown(name: str, value: float) -> str:
    if "load_" in name:
        return f"{value / 1e9:.2f} GB/s"
    return f"{value:.3f} s" if name == "coupled_cluster" else f"{value:.1f} us"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--figures"]:
        figures(sys.argv[2])
    else:
        main()

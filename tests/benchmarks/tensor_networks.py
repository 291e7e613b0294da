"""Times quimb's algorithms on tensors of a server beside the same on NumPy's arrays.

    OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \
    build/venv/bin/python tests/benchmarks/tensor_networks.py [--threads 1]

Runs a private server ($TENSORD_SERVER, or build/dev/bin/tensord). Both sides take turns;
figures are medians of steps.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import quimb as qu
import quimb.tensor as qtn

import tensord
import tensord.array as xp

SERVER = Path(__file__).resolve().parents[2] / "build/dev/bin/tensord"
SITES = 16


def chain(bond: int, convert: Callable[[Any], Any]) -> Iterator[int]:
    """TEBD of a Heisenberg chain that is entangled as far as the bond allows; yields how
    many gates a step has."""
    state = qtn.MPS_rand_state(SITES, bond, dtype="complex128", seed=1)
    model = qtn.LocalHam1D(SITES, H2=np.asarray(qu.ham_heis(2), "complex128"))
    state.apply_to_arrays(convert)
    model.apply_to_arrays(convert)
    options = {"cutoff": 1e-10, "max_bond": bond}
    evolution = qtn.TEBD(state, model, dt=0.05, split_opts=options, progbar=False)
    while True:
        evolution.step()
        yield SITES - 1


def lattice(bond: int, convert: Callable[[Any], Any]) -> Iterator[int]:
    """Simple update of a Heisenberg lattice."""
    model = qtn.ham_2d_heis(3, 3)
    state = qtn.PEPS.rand(3, 3, bond, seed=1)
    state.apply_to_arrays(convert)
    model.apply_to_arrays(convert)
    update = qtn.SimpleUpdate(
        state,
        model,
        D=bond,
        ordering="largest_first",
        compute_energy_final=False,
        progbar=False,
    )
    while True:
        update.sweep(0.05)
        yield len(model.terms)


def step_seconds(steps: Iterator[int], on_server: bool) -> float:
    """How long a gate of the next step takes, its results included."""
    begun = time.perf_counter()
    gates = next(steps)
    if on_server:
        xp.flush()
    return (time.perf_counter() - begun) / gates


def compare(name: str, bond: int, make: Callable[..., Iterator[int]]) -> None:
    sides = [(make(bond, xp.asarray), True), (make(bond, np.asarray), False)]
    times: list[list[float]] = [[], []]
    begun = time.monotonic()
    for steps, on_server in sides:
        for _ in range(3):
            step_seconds(steps, on_server)
    while len(times[0]) < 5 or (
        len(times[0]) < 20 and time.monotonic() - begun < arguments.seconds
    ):
        for (steps, on_server), seconds in zip(sides, times):
            seconds.append(step_seconds(steps, on_server))
    ours, theirs = (1e3 * statistics.median(each) for each in times)
    print(
        f"{name:14} {bond:5} {ours:9.3f} {theirs:9.3f} {ours / theirs:8.2f}", flush=True
    )


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--threads", type=int, default=1, help="of the server")
parser.add_argument("--seconds", type=float, default=30, help="for each line")
arguments = parser.parse_args()
os.environ.setdefault("TENSORD_SERVER", str(SERVER))
with tensord.serve(threads=arguments.threads) as address, xp.use(address):
    print("a gate, ms")
    print(f"{'what':14} {'bond':>5} {'tensord':>9} {'NumPy':>9} {'ratio':>8}")
    for bond in 8, 16, 32, 64, 128:
        compare("TEBD, chain", bond, chain)
    for bond in 2, 4, 6:
        compare("simple update", bond, lattice)

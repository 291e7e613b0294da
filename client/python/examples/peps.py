"""A Heisenberg lattice cooled by simple update, by quimb: on the server, then on NumPy.

A projected entangled pair state of a square lattice is evolved in imaginary time. Each
gate joins the tensors of two sites, with the weights of the bonds around them, and takes
them apart by a truncated SVD. quimb computes by autoray, which finds `tensord.array`: one
line makes tensors of a server of its arrays.
"""

import argparse
import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import quimb.tensor as qtn

import tensord
import tensord.array as xp

TIME_STEPS = 0.3, 0.1, 0.03


def run(arguments: argparse.Namespace, convert: Callable[[Any], Any]) -> float:
    """Cools the lattice; prints how long it took, and returns its energy a site."""
    model = qtn.ham_2d_heis(arguments.rows, arguments.columns)
    state = qtn.PEPS.rand(arguments.rows, arguments.columns, 2, seed=42)
    state.apply_to_arrays(convert)
    model.apply_to_arrays(convert)
    update = qtn.SimpleUpdate(
        state,
        model,
        D=arguments.bond,
        ordering="largest_first",  # By default it is drawn, which no two runs share.
        compute_energy_final=False,
        progbar=False,
    )
    for tau in TIME_STEPS:  # Each exponentiates the gates, which fetches their norms.
        update.sweep(tau)
    before, begun = xp.downloads(), time.perf_counter()
    for tau in TIME_STEPS:
        for _ in range(arguments.sweeps):
            update.sweep(tau)
    state = update.get_state()
    seconds, fetched = time.perf_counter() - begun, xp.downloads() - before
    name = "server" if convert is xp.asarray else "NumPy"
    print(f"{name:6}  {seconds:7.3f} s  bond {state.max_bond()}  downloads {fetched}")
    energy = state.compute_local_expectation(
        model.terms, max_bond=4 * arguments.bond**2, normalized=True
    )
    return complex(energy).real / state.nsites


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="of a server; a private one without")
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--bond", type=int, default=3)
    parser.add_argument("--sweeps", type=int, default=20, help="of each time step")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        address = arguments.address or stack.enter_context(tensord.serve())
        stack.enter_context(xp.use(address))
        resident = run(arguments, xp.asarray)
    known = run(arguments, np.asarray)
    print(f"energy a site {resident:.9f}, on NumPy {known:.9f}")
    return int(not abs(resident - known) < 1e-8)


if __name__ == "__main__":
    raise SystemExit(main())

"""A Heisenberg chain in time, by quimb: all tensors on the server, then on NumPy.

Time-evolving block decimation of a chain that begins as up, down, up, down. Each gate
joins the tensors of two sites and takes them apart by a truncated SVD. quimb computes by
autoray, which finds `tensord.array`: one line makes tensors of a server of its arrays.
"""

import argparse
import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import quimb as qu
import quimb.tensor as qtn

import tensord
import tensord.array as xp


def evolution(sites: int, bond: int, convert: Callable[[Any], Any]) -> qtn.TEBD:
    """The evolution of a chain whose arrays are what `convert` makes of NumPy's."""
    state = qtn.MPS_computational_state("01" * (sites // 2), dtype="complex128")
    model = qtn.LocalHam1D(sites, H2=np.asarray(qu.ham_heis(2), "complex128"))
    state.apply_to_arrays(convert)
    model.apply_to_arrays(convert)
    options = {"cutoff": 1e-10, "max_bond": bond}
    return qtn.TEBD(state, model, dt=0.05, split_opts=options, progbar=False)


def magnetizations(state: Any, convert: Callable[[Any], Any]) -> np.ndarray:
    """The expectation of Z of each site."""
    z = convert(np.diag([1.0 + 0j, -1.0]))
    values = [
        state.local_expectation_canonical(z, site, normalized=True)
        for site in range(state.L)
    ]
    return np.array([complex(value).real for value in values])


def run(arguments: argparse.Namespace, convert: Callable[[Any], Any]) -> np.ndarray:
    """Evolves the chain; prints how long it took, and returns what it has become."""
    tebd = evolution(arguments.sites, arguments.bond, convert)
    tebd.step()  # It exponentiates the gates, each of which fetches a norm.
    before, begun = xp.downloads(), time.perf_counter()
    for _ in range(1, arguments.steps):
        tebd.step()
    state = tebd.pt
    seconds, fetched = time.perf_counter() - begun, xp.downloads() - before
    values = magnetizations(state, convert)
    name = "server" if convert is xp.asarray else "NumPy"
    print(f"{name:6}  {seconds:7.3f} s  bond {state.max_bond()}  downloads {fetched}")
    return values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="of a server; a private one without")
    parser.add_argument("--sites", type=int, default=12)
    parser.add_argument("--bond", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        address = arguments.address or stack.enter_context(tensord.serve())
        stack.enter_context(xp.use(address))
        resident = run(arguments, xp.asarray)
    known = run(arguments, np.asarray)
    difference = np.max(np.abs(resident - known))
    print("Z of the sites", np.array2string(known, precision=6))
    print(f"difference {difference:.1e}")
    return int(not difference < 1e-9)


if __name__ == "__main__":
    raise SystemExit(main())

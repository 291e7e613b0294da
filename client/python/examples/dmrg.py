"""The ground state of a Heisenberg chain by two-site DMRG, all tensors on the server.

A sweep goes over the bonds. At each, the effective Hamiltonian is a program, prepared once
for its extents; Lanczos steps apply it, orthogonalize and converge on the server. Nothing
comes back but how many singular values were kept, and an energy a sweep.
"""

import argparse
import contextlib
import time
from typing import Any

import numpy as np

import tensord
import tensord.array as xp

# Of a state `V` of two sites, with the Hamiltonian of those to the left and to the right.
EFFECTIVE = "P[x,u,v,y] := L[x,w,a]*W[w,m,u,s]*X[m,n,v,t]*R[y,n,b]*V[a,s,t,b]"
TO_THE_RIGHT = "xwa,xuy,wmus,asb->ymb"
TO_THE_LEFT = "ymb,xuy,wmus,asb->xwa"


def heisenberg() -> np.ndarray:
    """The matrix product operator of a chain, at one site: (left, right, out, in)."""
    plus = np.array([[0.0, 1.0], [0.0, 0.0]])
    z, one = np.diag([0.5, -0.5]), np.eye(2)
    w = np.zeros((5, 5, 2, 2))
    w[0, 0] = w[4, 4] = one
    w[1, 0], w[2, 0], w[3, 0] = plus, plus.T, z
    w[4, 1], w[4, 2], w[4, 3] = plus.T / 2, plus / 2, z
    return w


class Chain:
    """A state in matrix product form, and what surrounds each of its bonds."""

    def __init__(self, session: Any, sites: int, cutoff: float, steps: int) -> None:
        self.session, self.cutoff, self.steps = session, cutoff, steps
        self.site = xp.asarray(heisenberg())
        up, down = np.eye(2).reshape(2, 1, 2, 1)
        self.tensors = [xp.asarray((up, down)[i % 2]) for i in range(sites)]
        ends = np.zeros((2, 1, 5, 1))
        ends[0, 0, 4, 0] = ends[1, 0, 0, 0] = 1
        self.left: list[Any] = [xp.asarray(ends[0])] + [None] * (sites - 1)
        self.right: list[Any] = [None] * (sites - 1) + [xp.asarray(ends[1])]
        self.programs: dict[Any, Any] = {}
        for i in range(sites - 1, 1, -1):
            self._extend_left(i)

    def _extend_right(self, i: int) -> None:
        """Takes site i into what is to the left of the next one."""
        a = self.tensors[i]
        self.left[i + 1] = xp.einsum(TO_THE_RIGHT, self.left[i], a, self.site, a)

    def _extend_left(self, i: int) -> None:
        """Takes site i into what is to the right of the one before."""
        a = self.tensors[i]
        self.right[i - 1] = xp.einsum(TO_THE_LEFT, self.right[i], a, self.site, a)

    def _program(self, i: int) -> Any:
        """The effective Hamiltonian of sites i and i + 1."""
        left, right = self.left[i], self.right[i + 1]
        shape = (left.shape[0], 2, 2, right.shape[0])
        if shape not in self.programs:
            operands = {"L": left, "W": self.site, "X": self.site, "R": right}
            state = tensord.TensorSpec(shape, "f8")
            self.programs[shape] = self.session.program(EFFECTIVE, **operands, V=state)
        return self.programs[shape]

    def improve(self, i: int, bond: int, to_right: bool) -> Any:
        """Replaces sites i and i + 1 by better ones; returns their energy, on the server."""
        program = self._program(i)
        named = {"L": self.left[i], "R": self.right[i + 1]}
        named |= {"W": self.site, "X": self.site}
        state = xp.tensordot(self.tensors[i], self.tensors[i + 1], 1)
        energy, state = lanczos(lambda v: program(V=v, **named), state, self.steps)
        first, second = self.session.factorize(
            "astb->ask,ktb",
            state,
            method="svd",
            rank=bond,
            relative_discarded_squares=self.cutoff,
            absorb="right" if to_right else "left",
        )
        xp.flush()
        kept = first.report.kept_extent
        self.tensors[i] = +first[..., :kept]
        self.tensors[i + 1] = +second[:kept]
        if to_right:
            self._extend_right(i)
        else:
            self._extend_left(i + 1)
        return energy

    def sweep(self, bond: int) -> float:
        """Improves all bonds, there and back; returns the energy."""
        last = len(self.tensors) - 2
        for i in range(last):
            self.improve(i, bond, to_right=True)
        for i in range(last, 0, -1):
            self.improve(i, bond, to_right=False)
        return float(self.improve(0, bond, to_right=True))


def lanczos(apply: Any, start: Any, steps: int) -> tuple[Any, Any]:
    """The lowest eigenvalue of what few steps see, and its vector: both on the server.

    Where nothing is left to add, the rest of the basis is zeros; the eigenvalue must be
    below 0.
    """
    basis = xp.zeros((steps, *start.shape))
    images = xp.zeros((steps, *start.shape))
    vector = start / xp.linalg.norm(start)
    for j in range(steps):
        basis[j] = vector
        image = apply(vector)
        images[j] = image
        rest = image
        for _ in range(2):
            overlaps = xp.tensordot(basis, rest, rest.ndim)
            rest = rest - xp.tensordot(overlaps, basis, 1)
        size = xp.linalg.norm(rest)
        vector = xp.where(size > 1e-9, rest / xp.maximum(size, 1e-9), 0.0)
    matrix = xp.tensordot(basis, images, (range(1, 5), range(1, 5)))
    values, vectors = xp.linalg.eigh(matrix)
    return values[0], xp.tensordot(vectors[:, 0], basis, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", help="of a server; a private one without")
    parser.add_argument("--sites", type=int, default=16)
    parser.add_argument("--bonds", type=int, nargs="+", default=[8, 16, 32, 64, 64, 64])
    parser.add_argument("--energy", type=float, help="that is known")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        address = arguments.address or stack.enter_context(tensord.serve())
        session = stack.enter_context(xp.use(address))
        chain = Chain(session, arguments.sites, cutoff=1e-13, steps=6)
        begun, before = time.perf_counter(), xp.downloads()
        for bond in arguments.bonds:
            energy = chain.sweep(bond)
            widest = max(each.shape[-1] for each in chain.tensors)
            seconds = time.perf_counter() - begun
            print(f"energy {energy:.12f}  bond {widest}  {seconds:.2f} s", flush=True)
        print(f"downloads {xp.downloads() - before}")
    if arguments.energy is None:
        return 0
    difference = abs(energy - arguments.energy)
    print(f"difference {difference:.1e}")
    return int(not difference < 1e-8)


if __name__ == "__main__":
    raise SystemExit(main())

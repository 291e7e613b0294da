"""CCSD(T) correlation energy of a closed-shell molecule, on a tensord server.

The equations are in ccsd.program and triples.program; an iteration is one request.
"""

import argparse
import collections
import contextlib
import functools
import json
import pathlib
import time
import numpy as np
import tensord

FILES = "eri_ao", "core_hamiltonian_ao", "mo_coefficients", "orbital_energies"
STEP, TRIPLES = (
    pathlib.Path(__file__).with_name(name).read_text()
    for name in ("ccsd.program", "triples.program")
)
AMPLITUDES = "t1_new", "t2_new"


def reciprocal_gaps(energies: list[np.ndarray], count: int) -> np.ndarray:
    """1 / (e_i + ... - e_a - ...), with the modes i ... a ..., `count` of each."""
    occupied, virtual = energies
    return 1 / functools.reduce(np.add.outer, [occupied] * count + [-virtual] * count)


def extrapolate(steps: collections.deque[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """DIIS: mixes amplitudes so that the changes that led to them cancel best."""
    amplitudes, changes = map(np.array, zip(*steps))
    overlaps = changes @ changes.T
    weights = np.linalg.solve(overlaps / overlaps.max(), np.ones(len(steps)))
    return weights @ amplitudes / weights.sum()


def ccsd_t(
    s: tensord.Session,
    eri: np.ndarray,
    h: np.ndarray,
    orbitals: list[np.ndarray],
    energies: list[np.ndarray],
) -> tuple[float, float]:
    """The energies of CCSD and (T). `orbitals`, `energies`: occupied and virtual."""
    d1, d2, d3 = (reciprocal_gaps(energies, count) for count in (1, 2, 3))
    shared = dict(zip(("eri", "Co", "Cv"), map(s.upload, (eri, *orbitals))))
    given = shared | dict(zip(("h", "D1", "D2"), map(s.upload, (h, d1, d2))))
    step = s.program(STEP, outputs=[*AMPLITUDES, "E"], t1=d1, t2=d2, **given)
    t = np.zeros(d1.size + d2.size)
    steps = collections.deque(maxlen=8)
    print("iteration   energy in hartree    change      time")
    for iteration in range(1, 51):
        begun = time.perf_counter()
        t1, t2 = np.split(t, [d1.size])
        new = step(t1=t1.reshape(d1.shape), t2=t2.reshape(d2.shape), **given)
        after = np.concatenate([np.asarray(new[name]).ravel() for name in AMPLITUDES])
        energy, change = float(new["E"]), np.linalg.norm(after - t)
        took = 1e3 * (time.perf_counter() - begun)
        print(f"{iteration:9} {energy:19.12f} {change:9.1e} {took:6.1f} ms")
        if change < 1e-9:
            break
        steps.append((after, after - t))
        t = extrapolate(steps)
    else:
        raise SystemExit("no convergence")
    t1, t2 = (new[name] for name in AMPLITUDES)
    triples = s.run(TRIPLES, outputs=["E"], t1=t1, t2=t2, D3=d3, **shared)
    return energy, float(triples)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("folder", type=pathlib.Path, help="with *.npy and reference.json")
parser.add_argument("--address", help="of a server; by default a private one is run")
parser.add_argument("--numpy", action="store_true", help="no server: the same on NumPy")
args = parser.parse_args()
eri, h, c, e = (np.load(args.folder / f"{name}.npy") for name in FILES)
known = json.loads((args.folder / "reference.json").read_text())
n = known["occupied"]
with contextlib.ExitStack() as stack:
    if args.numpy:
        import numpy_session

        s = numpy_session.Session()
    else:
        at = args.address or stack.enter_context(tensord.serve())
        s = stack.enter_context(tensord.connect(at, job="ccsd"))
    begun = time.perf_counter()
    energies = ccsd_t(s, eri, h, [c[:, :n], c[:, n:]], [e[:n], e[n:]])
    took = time.perf_counter() - begun
wanted = known["energy_ccsd_correlation"], known["energy_ccsd_t"]
error = 0.0
for name, energy, reference in zip(("CCSD", "(T)"), energies, wanted):
    error = max(error, difference := abs(energy - reference))
    print(f"{name:5}{energy:.12f}  reference {reference:.12f}  ", end="")
    print(f"difference {difference:.1e} hartree")
print(f"{'NumPy' if args.numpy else 'tensord'}, all of it: {took:.2f} s")
raise SystemExit(0 if error <= 1e-8 else 1)

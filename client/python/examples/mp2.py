"""MP2 correlation energy of a closed-shell molecule, on a tensord server."""

import argparse
import contextlib
import json
import pathlib
import time
import numpy as np
import tensord

FILES = "eri_ao", "mo_coefficients", "orbital_energies"
TRANSFORMATIONS = "pqrs,pi->iqrs", "iqrs,qa->iars", "iars,rj->iajs", "iajs,sb->iajb"


@contextlib.contextmanager
def timed(step: str):
    begun = time.perf_counter()
    yield
    print(f"{step:32} {1e3 * (time.perf_counter() - begun):10.2f} ms")


def mp2(s: tensord.Session, eri: np.ndarray, orbitals: list, energies: list) -> float:
    """E = sum_iajb (ia|jb) [2 (ia|jb) - (ib|ja)] / (e_i + e_j - e_a - e_b)"""
    # `orbitals` and `energies`: the occupied and the virtual. Only E is downloaded.
    with timed("upload"):
        x, *c, e_occ, e_vir = map(s.upload, (eri, *orbitals, *energies))
    for k, subscripts in enumerate(TRANSFORMATIONS):
        with timed(subscripts):
            x = s.einsum(subscripts, x, c[k % 2])
    with timed("amplitudes"):
        gap = s.elementwise(e_occ, "i", e_vir, "a", "ia", gamma=-1)
        gaps = s.elementwise(gap, "ia", gap, "jb", "iajb")
        spins = s.elementwise(x, "iajb", x, "ibja", "iajb", alpha=2, gamma=-1)
        t = s.elementwise(gaps, "iajb", spins, "iajb", "iajb", op="mul", op_a="rcp")
    with timed("energy"):
        return float(s.einsum("iajb,iajb->", x, t))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("folder", type=pathlib.Path, help="with *.npy and reference.json")
parser.add_argument("--address", help="of a server; by default a private one is run")
parser.add_argument("--occupied", type=int, help="orbitals; else from reference.json")
args = parser.parse_args()
eri, orbitals, energies = (np.load(args.folder / f"{name}.npy") for name in FILES)
file = args.folder / "reference.json"
known = json.loads(file.read_text()) if file.exists() else {}
n = args.occupied or known["occupied"]
c, e = [orbitals[:, :n], orbitals[:, n:]], [energies[:n], energies[n:]]
server = contextlib.nullcontext(args.address) if args.address else tensord.serve()
with server as at, tensord.connect(at, job="mp2") as s, timed("tensord, all of it"):
    energy = mp2(s, eri, c, e)
gap = np.subtract.outer(*e)
with timed("numpy.einsum, all of it"):
    x = np.einsum("pqrs,pi,qa,rj,sb->iajb", eri, *c, *c, optimize=True)
    expected = np.vdot(x, (2 * x - x.swapaxes(1, 3)) / np.add.outer(gap, gap))
wanted = known.get("energy_mp2_correlation", expected)
error = abs(energy - wanted)
print(f"energy {energy:.12f}  reference {wanted:.12f}  difference {error:.1e} hartree")
raise SystemExit(0 if error <= 1e-9 else 1)

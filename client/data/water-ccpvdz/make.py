"""Integrals of a small molecule as .npy files, with reference energies, made with PySCF."""

import json, sys
import numpy as np
from pyscf import gto, scf, mp, cc, ao2mo
import pyscf

mol = gto.M(
    atom="O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692",
    basis="cc-pvdz",
    unit="Angstrom",
    verbose=0,
)
mf = scf.RHF(mol)
mf.conv_tol = 1e-13
mf.conv_tol_grad = 1e-9
e = mf.kernel()
eri = mol.intor("int2e")  # (pq|rs), chemists' notation
C = np.ascontiguousarray(mf.mo_coeff)
eps = mf.mo_energy
nocc = mol.nelectron // 2
m = mp.MP2(mf)
emp2, t2 = m.kernel()
eri_mo = np.einsum("pqrs,pi,qj,rk,sl->ijkl", eri, C, C, C, C, optimize=True)
o, v = slice(0, nocc), slice(nocc, None)
ovov = eri_mo[o, v, o, v]
d = (
    eps[o, None, None, None]
    - eps[None, v, None, None]
    + eps[None, None, o, None]
    - eps[None, None, None, v]
)
t = ovov / d
e_os = float(np.einsum("iajb,iajb->", t, ovov))
e_ss = float(np.einsum("iajb,iajb->", t - t.swapaxes(1, 3), ovov))
mycc = cc.CCSD(mf)
mycc.conv_tol = 1e-11
mycc.conv_tol_normt = 1e-9
mycc.max_cycle = 200
ecc, _, _ = mycc.kernel()
et = mycc.ccsd_t()
print(eri.shape, nocc, e, emp2, e_os + e_ss, e_os, e_ss, ecc, et)
h = mol.intor("int1e_kin") + mol.intor("int1e_nuc")
np.save("eri_ao.npy", eri)
np.save("mo_coefficients.npy", C)
np.save("orbital_energies.npy", eps)
np.save("core_hamiltonian_ao.npy", h)
np.save("overlap_ao.npy", mol.intor("int1e_ovlp"))
json.dump(
    dict(
        molecule="H2O",
        geometry_angstrom=[
            ["O", 0, 0, 0.1173],
            ["H", 0, 0.7572, -0.4692],
            ["H", 0, -0.7572, -0.4692],
        ],
        basis="cc-pVDZ",
        basis_functions=mol.nao,
        occupied=nocc,
        nuclear_repulsion=mol.energy_nuc(),
        energy_rhf=e,
        energy_mp2_correlation=float(emp2),
        energy_mp2_opposite_spin=e_os,
        energy_mp2_same_spin=e_ss,
        energy_ccsd_correlation=float(ecc),
        energy_ccsd_t=float(et),
        units="hartree",
        made_with=f"PySCF {pyscf.__version__}",
    ),
    open("reference.json", "w"),
    indent=1,
)

"""Statements of TensorOperations.jl's README and tests, and what NumPy makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]
ALPHA, BETA = 0.75, -1.25
SCALARS = {"α": ALPHA, "β": BETA, "ζ": 1j}


@dataclasses.dataclass(frozen=True)
class Product:
    """A product of arrays times a factor, as NumPy computes it.

    Attributes:
        subscripts: For `numpy.einsum`.
        operands: Names; behind one, `*` means its conjugate and `\\` the matrix that has
            it on its diagonal.
        times: The factor, or what computes it.
        divisor: What computes a divisor.
    """

    subscripts: str
    operands: str
    times: complex = 1
    divisor: Callable[[Arrays], Any] | None = None

    def value(self, arrays: Arrays) -> np.ndarray:
        operands = [operand_of(arrays, name) for name in self.operands.split()]
        value = self.times * np.einsum(self.subscripts, *operands)
        return value / (self.divisor(arrays) if self.divisor else 1)

    def magnitude(self, arrays: Arrays) -> np.ndarray:
        operands = [abs(operand_of(arrays, name)) for name in self.operands.split()]
        value = abs(self.times) * np.einsum(self.subscripts, *operands)
        return value / abs(self.divisor(arrays) if self.divisor else 1)


def operand_of(arrays: Arrays, name: str) -> np.ndarray:
    array = arrays[name.rstrip("*\\")]
    array = np.diag(array) if "\\" in name else array
    return array.conj() if name.endswith("*") else array


NETWORK = {
    "ρₗ": (4, 4),
    "A1": (4, 2, 5),
    "A2": (5, 3, 6),
    "ρᵣ": (6, 6),
    "H": (2, 3, 2, 3),
}
APPLIED = [Product("xy,yub,bvz,zc,stuv->xstc", "ρₗ A1 A2 ρᵣ H")]
ENERGY = [Product("xa,asb,btc,cz,uvst,xuy,yvz->", "ρₗ A1 A2 ρᵣ H A1* A2*")]
ENERGY_TEXT = (
    "ρₗ[a',a]*A1[a,s,b]*A2[b,s',c]*ρᵣ[c,c']*H[t,t',s,s']"
    "*conj(A1[a',t,b'])*conj(A2[b',t',c'])"
)
SQUARE = {"A": (3, 3), "B": (3, 3), "C": (3, 3), "D": (2, 2)}
MATRICES = {"mat1": (2, 2), "mat2": (2, 2), "mat3": (2, 2), "mat4": (2, 2)}
ON_DIAGONAL = {"A": (4, 4, 4, 4), "B": (4,), "F": (3, 2)}
MPO = {"A": (4, 3, 4), "ρL": (4, 2, 4), "O": (2, 3, 3, 2), "ρR": (4, 2, 4)}

README = [
    (
        "E[a,b,c] := A[a,e,f,c,f,g]*B[g,b,e] + α*C[c,a,b]",
        {"A": (2, 3, 4, 5, 4, 6), "B": (6, 7, 3), "C": (5, 2, 7)},
        [Product("aefcfg,gbe->abc", "A B"), Product("cab->abc", "C", ALPHA)],
    ),
    (
        "D[å,ß,c'] := A[å,1,'f',c','f',2]*B[2,ß,1] + α*C[c',å,ß]",
        {"A": (2, 3, 4, 5, 4, 6), "B": (6, 7, 3), "C": (5, 2, 7)},
        [Product("aefcfg,gbe->abc", "A B"), Product("cab->abc", "C", ALPHA)],
    ),
    *(
        (
            text,
            {"A": (2, 3, 4, 2, 3), "B": (3, 3, 2, 5), "C": (4, 2, 3, 2)},
            [Product("abcde,befg,cfij->adjig", "A B C")],
        )
        for text in (
            "D[a,d,j,i,g] := A[a,b,c,d,e]*B[b,e,f,g]*C[c,f,i,j]",
            "D[a,d,j,i,g] := ((A[a,b,c,d,e]*B[b,e,f,g])*C[c,f,i,j])",
            "D[:] := A[-1,3,1,-2,2]*B[3,2,4,-5]*C[1,4,-4,-3]",
            "D[:] := (A[-1,3,1,-2,2]*C[1,4,-4,-3])*B[3,2,4,-5]",
        )
    ),
    (
        "D[a,b,c,d] := A[a,e,c,f]*B[g,d,e]*C[g,f,b]",
        {"A": (2, 3, 4, 2), "B": (3, 5, 3), "C": (3, 2, 4)},
        [Product("aecf,gde,gfb->abcd", "A B C")],
    ),
    (
        "D[a,b,c,d] := A[a,e,c,f]*B[f,d,e,b]",
        {"A": (2, 3, 4, 2), "B": (2, 5, 3, 4)},
        [Product("aecf,fdeb->abcd", "A B")],
    ),
    (
        "D[a,b,c] := α*A[a,c,b] + B[a,d,b,d,c] - conj(C[c,b,a])",
        {"A": (2, 3, 4), "B": (2, 5, 4, 5, 3), "C": (3, 4, 2)},
        [
            Product("acb->abc", "A", ALPHA),
            Product("adbdc->abc", "B"),
            Product("cba->abc", "C*", -1),
        ],
    ),
    (
        "D[a,b,c] := α*A[a,c,d,e]*conj(B[d,b,e]) + β*conj(C[c,b,a])",
        {"A": (2, 3, 4, 5), "B": (4, 3, 5), "C": (3, 3, 2)},
        [Product("acde,dbe->abc", "A B*", ALPHA), Product("cba->abc", "C*", BETA)],
    ),
]

PRODUCTS = [
    (
        "C[4, 1, 3, 2] := A[1, 2, 3, 4]",
        {"A": (3, 5, 4, 6)},
        [Product("abcd->dacb", "A")],
    ),
    (
        "C[3, 1, 4, 2] := A[3, 1, 4, 2] + B[1, 2, 3, 4]",
        {"A": (3, 5, 4, 6), "B": (5, 6, 3, 4)},
        [Product("cadb->cadb", "A"), Product("abcd->cadb", "B")],
    ),
    ("C[a] := A[a, b', b']", {"A": (5, 7, 7)}, [Product("abb->a", "A")]),
    ("C[a] := A[a, b′, b′]", {"A": (5, 7, 7)}, [Product("abb->a", "A")]),
    (
        "C[e, a, d] := A[a, b, c, d, b, e, c]",
        {"A": (3, 5, 2, 3, 5, 4, 2)},
        [Product("abcdbec->ead", "A")],
    ),
    (
        "C[a, g, e, d, f] := A[a, b, c, d, e] * B[c, f, b, g]",
        {"A": (3, 7, 5, 3, 4), "B": (5, 6, 7, 3)},
        [Product("abcde,cfbg->agedf", "A B")],
    ),
    (
        "C[1,2,5,6,3,4,7,8] := A[1,2,3,4] * B[5,6,7,8]",
        {"A": (2, 3, 2, 3), "B": (3, 2, 3, 2)},
        [Product("abcd,efgh->abefcdgh", "A B")],
    ),
    (
        "D[d,f,h] := A[a,c,f,a,e,b,b,g] * B[c,h,g,e,d] +\n    0.5 * C[d,h,f]",
        {"A": (3, 4, 5, 3, 2, 2, 2, 3), "B": (4, 2, 3, 2, 6), "C": (6, 2, 5)},
        [Product("acfaebbg,chged->dfh", "A B"), Product("dhf->dfh", "C", 0.5)],
    ),
    (
        "HrA12′[a,s1,s2,c] := ρₗ[a,a']*A1[a',t1,b]*A2[b,t2,c']*ρᵣ[c',c]*H[s1,s2,t1,t2]",
        NETWORK,
        APPLIED,
    ),
    (
        "HrA12′′[:] := ρₗ[-1,1]*H[-2,-3,4,5]*A2[2,5,3]*ρᵣ[3,-4]*A1[1,4,2]",
        NETWORK,
        APPLIED,
    ),
    (
        "E[i_1, i_2] := X[j_1, j_2] * A[i_1, j_1] * B[i_2, j_2]",
        {"A": (5, 6), "B": (3, 4), "X": (6, 4)},
        [Product("xy,ax,by->ab", "X A B")],
    ),
    (
        "D[a,b,c,d] := A[a,e,c,f] * B[g,d,e] * conj(C[g,f,b])",
        {"A": (2, 3, 4, 2), "B": (3, 5, 3), "C": (3, 2, 4)},
        [Product("aecf,gde,gfb->abcd", "A B C*")],
    ),
    (
        "C[i,j,k,l] := A[i,j,m] * B[k,l,m]",
        {"A": (2, 3, 4), "B": (3, 2, 4)},
        [Product("ijm,klm->ijkl", "A B")],
    ),
    (
        "c[i,k] := a[i,j]*b[j,k]; d[i,k] := a[i,j]*b[j,k] + 2*a[i,k] + 0*c[i,k]",
        {"a": (3, 3), "b": (3, 3)},
        [Product("ij,jk->ik", "a b"), Product("ik->ik", "a", 2)],
    ),
    (
        "vec[a] := (mat1[a, b] * mat2[b, c]) * vec[c]",
        {"vec": (2,), "mat1": (2, 2), "mat2": (2, 2)},
        [Product("ab,bc,c->a", "mat1 mat2 vec")],
    ),
    (
        "res[mu] := -(mat1[mu, alpha] * vec[alpha] + mat2[mu, alpha] * vec[alpha])",
        {"vec": (2,), "mat1": (2, 2), "mat2": (2, 2)},
        [Product("ab,b->a", "mat1 vec", -1), Product("ab,b->a", "mat2 vec", -1)],
    ),
    (
        "a[-1, -2] := b[-1, 1] * (c[1, 2] + d[1, 2]) * e[2, -2]",
        {"b": (2, 3), "c": (3, 4), "d": (3, 4), "e": (4, 2)},
        [Product("ab,bc,cd->ad", "b c e"), Product("ab,bc,cd->ad", "b d e")],
    ),
    (
        "a[-1, -2] := b[-1, 1] * c[1, -2] * (d[2, 2])",
        {"b": (2, 3), "c": (3, 4), "d": (3, 3)},
        [Product("ab,bc,dd->ac", "b c d")],
    ),
    (
        "a[-1, -2] := b[-1, 1] * c[1, -2] + d[-1, 1] * e[1, -2]",
        {"b": (2, 3), "c": (3, 4), "d": (2, 5), "e": (5, 4)},
        [Product("ab,bc->ac", "b c"), Product("ab,bc->ac", "d e")],
    ),
]

SCALAR_RESULTS = [
    ("s = A[a, b, a, b]", {"A": (3, 2, 3, 2)}, [Product("abab->", "A")]),
    ("s = tensorscalar(A[a,b,a,b])", {"A": (3, 2, 3, 2)}, [Product("abab->", "A")]),
    ("s = scalar(A[a,b,a,b])", {"A": (3, 2, 3, 2)}, [Product("abab->", "A")]),
    ("s = X[a, b] * Y[a, b]", {"X": (3, 4), "Y": (3, 4)}, [Product("ab,ab->", "X Y")]),
    (f"E1 = {ENERGY_TEXT}", NETWORK, ENERGY),
    (f"E1 = tensorscalar({ENERGY_TEXT})", NETWORK, ENERGY),
    (
        "n = tensorscalar(D1[d, f, h] * conj(D1[d, f, h]))",
        {"D1": (4, 3, 2)},
        [Product("dfh,dfh->", "D1 D1*")],
    ),
    (
        "E = A[1 2; 6] * ρL[5 3; 1] * O[3 4; 2 7] * ρR[6 7; 8] * conj(A[5 4; 8])",
        MPO,
        [Product("abf,eca,cdbg,fgh,edh->", "A ρL O ρR A*")],
    ),
    (
        "res = (v1[a]*v1[b]*v1[c])*m1[a,b,c] + (v2[a]*v2[b]*v2[c])*m2[a,b,c]",
        {"v1": (2,), "v2": (2,), "m1": (2, 2, 2), "m2": (2, 2, 2)},
        [
            Product("a,b,c,abc->", "v1 v1 v1 m1"),
            Product("a,b,c,abc->", "v2 v2 v2 m2"),
        ],
    ),
    (
        "res = (v1[a]*v1[b]*v1[c])*m1[a,b,c]",
        {"v1": (2,), "m1": (2, 2, 2)},
        [Product("a,b,c,abc->", "v1 v1 v1 m1")],
    ),
]

SCALAR_FACTORS = [
    (
        "s = v[b]*v[b]\nD[a] := s*w[a]",
        {"v": (3,), "w": (4,)},
        [Product("b,b,a->a", "v v w")],
    ),
    (
        "s = v[b]*conj(v[b])\nD[a] := w[a]/s",
        {"v": (3,), "w": (4,)},
        [Product("a->a", "w", divisor=lambda t: np.vdot(t["v"], t["v"]))],
    ),
    *(
        (f"res[a,b] := {text}", MATRICES, products)
        for products, texts in (
            (
                [Product("xy,yx,ac,cb->ab", "mat1 mat2 mat3 mat4")],
                [
                    "mat1[x,y]*mat2[y,x]*mat3[a,c]*mat4[c,b]",
                    "(mat1[x,y]*mat2[y,x])*mat3[a,c]*mat4[c,b]",
                    "tensorscalar(mat1[x,y]*mat2[y,x])*mat3[a,c]*mat4[c,b]",
                ],
            ),
            (
                [Product("xy,yx,ba->ab", "mat1 mat2 mat3"), Product("ab->ab", "mat4")],
                [
                    "mat1[x,y]*mat2[y,x]*mat3[b,a] + mat4[a,b]",
                    "(mat1[x,y]*mat2[y,x])*mat3[b,a] + mat4[a,b]",
                    "mat4[a,b] + mat1[x,y]*mat3[b,a]*mat2[y,x]",
                    "mat4[a,b] + tensorscalar(mat1[x,y]*mat2[y,x])*mat3[b,a]",
                ],
            ),
            (
                [Product("xy,yx,ba->ab", "mat1 mat2 mat3", 0.5)],
                [
                    "0.5*mat1[x,y]*mat2[y,x]*mat3[b,a]",
                    "(mat1[x,y]*mat2[y,x])*mat3[b,a]*0.5",
                    "0.5*mat1[x,y]*mat3[b,a]*mat2[y,x]",
                    "0.5*tensorscalar(mat1[x,y]*mat2[y,x])*mat3[b,a]",
                ],
            ),
        )
        for text in texts
    ),
    (
        "a[x,y] := b[x,z]*tensorscalar(c[z,z])*d[z,y]",
        {"b": (3, 3), "c": (2, 2), "d": (3, 3)},
        [Product("xz,uu,zy->xy", "b c d")],
    ),
    (
        "E[a,c] := A[a,b]*B[b,c]/tensorscalar(D[b,b])",
        SQUARE,
        [Product("ab,bc->ac", "A B", divisor=lambda t: np.trace(t["D"]))],
    ),
    (
        "F[a,c] := tensorscalar(D[b,b]) \\ (A[a,b]*B[b,c])",
        SQUARE,
        [Product("ab,bc->ac", "A B", divisor=lambda t: np.trace(t["D"]))],
    ),
    (
        "a[x,y] := A[x,z]*B[z,y]/α",
        SQUARE,
        [Product("xz,zy->xy", "A B", 1 / ALPHA)],
    ),
    (
        "a[x,y] := 2 \\ (A[x,z]*B[z,y])",
        SQUARE,
        [Product("xz,zy->xy", "A B", 0.5)],
    ),
    ("a[x,y] := α \\ conj(A[x,y])", SQUARE, [Product("xy->xy", "A*", 1 / ALPHA)]),
    (
        "a[x,y] := α/β*A[x,y]/β*α",
        SQUARE,
        [Product("xy->xy", "A", (ALPHA / BETA) ** 2)],
    ),
]

CONJUGATES = [
    ("a[x,y] := conj(A[x,z])*B[z,y]", SQUARE, [Product("xz,zy->xy", "A* B")]),
    ("a[x,y] := (A[x,z])'*B[z,y]", SQUARE, [Product("xz,zy->xy", "A* B")]),
    ("a[x,y] := -(A[x,z]*B[z,y])", SQUARE, [Product("xz,zy->xy", "A B", -1)]),
    (
        "a[x,y] := A[x,y]' + adjoint(B[y,x]) - C[x,y]",
        SQUARE,
        [Product("xy->xy", "A*"), Product("yx->xy", "B*"), Product("xy->xy", "C", -1)],
    ),
    (
        "a[x,y] := 3*conj(α*A[x y])",
        SQUARE,
        [Product("xy->xy", "A*", 3 * ALPHA)],
    ),
    (
        "a[x,y] := (A[x,z]*B[z,y] + 1im*C[x,y]/2)'",
        SQUARE,
        [Product("xz,zy->xy", "A* B*"), Product("xy->xy", "C*", -0.5j)],
    ),
]

SEPARATORS = [
    (
        "E[a; c] := ζ*(A[a b]*B[b c] + C[a b]*A[b c])",
        SQUARE,
        [Product("ab,bc->ac", "A B", 1j), Product("ab,bc->ac", "C A", 1j)],
    ),
    *(
        (text, {"x": (2, 3, 4), "y": (4,)}, [Product("abc,c->ba", "x y")])
        for text in (
            "D[b a] := x[a b c]*y[c]",
            "D[b; a] := x[a b; c]*y[c]",
            "D[b, a] := x[(); (a, b, c)]*y[(c,); ()]",
            "D[(b,); (a,)] := x[(); a b c]*y[c]",
            "D[b, a] := x[a, b; c]*y[c]",
            "D[b a] ≔ x[a; b c]*y[c]",
        )
    ),
    (
        "D[-2 -1] := x[-1 -2 1]*y[1]",
        {"x": (2, 3, 4), "y": (4,)},
        [Product("abc,c->ba", "x y")],
    ),
]

DIAGONALS = [
    (
        "A2[1,2,3,4] := U2[3,1,a]*Diagonal(S)[a,a']*conj(V2[4,2,a'])",
        {"U2": (3, 4, 6), "S": (6,), "V2": (3, 4, 6)},
        [Product("cak,k,dbk->abcd", "U2 S V2*")],
    ),
    (
        "S2[i,k] := Diagonal(S)[i,j]*Diagonal(S)[k,j]",
        {"S": (5,)},
        [Product("ij,kj->ik", "S\\ S\\")],
    ),
    (
        "Str = Diagonal(S)[i,j]*Diagonal(S)[i,j]",
        {"S": (5,)},
        [Product("i,i->", "S S")],
    ),
    (
        "SS[i,j,k,l] := Diagonal(S)[i,j]*Diagonal(S)[k,l]",
        {"S": (3,)},
        [Product("ij,kl->ijkl", "S\\ S\\")],
    ),
    *(
        (f"C[3,1,4,2] := {first}*{second}", ON_DIAGONAL, [product])
        for one, other, product in (
            ("A[a,2,3,4]", "Diagonal(B)[a,1]", Product("xbcd,xa->cadb", "A B\\")),
            (
                "A[1,a,3,4]",
                "conj(Diagonal(B)[a,2])",
                Product("axcd,xb->cadb", "A B\\*"),
            ),
            (
                "conj(A[1,2,a,4])",
                "Diagonal(B)[a,3]",
                Product("abxd,xc->cadb", "A* B\\"),
            ),
            (
                "conj(A[1,2,3,a])",
                "conj(Diagonal(B)[a,4])",
                Product("abcx,xd->cadb", "A* B\\*"),
            ),
        )
        for first, second in ((one, other), (other, one))
    ),
    *(
        (f"D[1,2] := {first}*{second}", ON_DIAGONAL, [product])
        for one, other, product in (
            ("A[1,2,a,b]", "Diagonal(B)[a,b]", Product("abxx,x->ab", "A B")),
            ("A[1,b,2,a]", "conj(Diagonal(B)[a,b])", Product("axbx,x->ab", "A B*")),
            ("conj(A[a,2,1,b])", "Diagonal(B)[a,b]", Product("xbax,x->ab", "A* B")),
            (
                "conj(A[a,1,b,2])",
                "conj(Diagonal(B)[a,b])",
                Product("xaxb,x->ab", "A* B*"),
            ),
        )
        for first, second in ((one, other), (other, one))
    ),
    (
        "G[a,c,b,d] := F[a,b]*Diagonal(B)[c,d]",
        ON_DIAGONAL,
        [Product("ab,cd->acbd", "F B\\")],
    ),
    (
        "G[a,b] := Diagonal(B)[a,b]/2 - A[a,b,c,c]",
        ON_DIAGONAL,
        [Product("ab->ab", "B\\", 0.5), Product("abcc->ab", "A", -1)],
    ),
]

CASES = [
    *README,
    *PRODUCTS,
    *SCALAR_RESULTS,
    *SCALAR_FACTORS,
    *CONJUGATES,
    *SEPARATORS,
    *DIAGONALS,
]

WRITTEN = [
    (
        "D[a,b,c] = A[a,e,f,c,f,g]*B[g,b,e] + α*C[c,a,b]",
        {"A": (2, 3, 4, 5, 4, 6), "B": (6, 7, 3), "C": (5, 2, 7), "D": (2, 7, 5)},
        [Product("aefcfg,gbe->abc", "A B"), Product("cab->abc", "C", ALPHA)],
    ),
    (
        "D[3, 1, 4, 2] = β * D[3, 1, 4, 2] + α * A[1, 2, 3, 4]",
        {"A": (3, 5, 4, 2), "D": (4, 3, 2, 5)},
        [Product("cadb->cadb", "D", BETA), Product("abcd->cadb", "A", ALPHA)],
    ),
    (
        "D[b, c] += α * A[a, b, c, a]",
        {"A": (3, 5, 4, 3), "D": (5, 4)},
        [Product("bc->bc", "D"), Product("abca->bc", "A", ALPHA)],
    ),
    (
        "D[d, a, e] -= α * A[a, b, c, d] * conj(B[c, e, b])",
        {"A": (3, 5, 4, 2), "B": (4, 3, 5), "D": (2, 3, 3)},
        [Product("dae->dae", "D"), Product("abcd,ceb->dae", "A B*", -ALPHA)],
    ),
    (
        "D[a,b,c] += α*A[a,c,b] + B[a,d,b,d,c] - conj(C[c,b,a])",
        {"A": (2, 3, 4), "B": (2, 5, 4, 5, 3), "C": (3, 4, 2), "D": (2, 4, 3)},
        [
            Product("abc->abc", "D"),
            Product("acb->abc", "A", ALPHA),
            Product("adbdc->abc", "B"),
            Product("cba->abc", "C*", -1),
        ],
    ),
    (
        "D[i, k] = Diagonal(S)[i, j] * Diagonal(S)[j, k]",
        {"S": (4,), "D": (4, 4)},
        [Product("ij,jk->ik", "S\\ S\\")],
    ),
    (
        "D[i, k] -= Diagonal(S)[k, i]",
        {"S": (4,), "D": (4, 4)},
        [Product("ik->ik", "D"), Product("ki->ik", "S\\", -1)],
    ),
    (
        "D = A[a,a] - D*D",
        {"A": (3, 3), "D": ()},
        [Product("aa->", "A"), Product(",->", "D D", -1)],
    ),
]

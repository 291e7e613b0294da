"""Linear algebra on tensors that stay on the server, as the array API has it.

`expm` and `solve_triangular` are those of SciPy.
"""

from tensord._array_linalg import (
    EighResult,
    QRResult,
    SVDResult,
    cholesky,
    diagonal,
    eigh,
    eigvalsh,
    matmul,
    matrix_norm,
    matrix_transpose,
    norm,
    outer,
    qr,
    svd,
    svdvals,
    tensordot,
    trace,
    vecdot,
    vector_norm,
)
from tensord._array_names import missing
from tensord._array_solving import (
    expm,
    inv,
    matrix_power,
    matrix_rank,
    pinv,
    solve,
    solve_triangular,
)

__all__ = [
    "EighResult",
    "QRResult",
    "SVDResult",
    "cholesky",
    "diagonal",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> object:
    raise missing("tensord.array.linalg", name, __all__)

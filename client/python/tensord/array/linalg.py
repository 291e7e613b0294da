"""Linear algebra on tensors that stay on the server, as the array API has it."""

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
from tensord._array_solving import inv, matrix_power, matrix_rank, pinv, solve

__all__ = [
    "EighResult",
    "QRResult",
    "SVDResult",
    "cholesky",
    "diagonal",
    "eigh",
    "eigvalsh",
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
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> object:
    raise missing("tensord.array.linalg", name, __all__)

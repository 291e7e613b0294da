"""Functions of `tensord.array.linalg`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tensord._array_layout import matrix_transpose
from tensord._array_numbers import abs, conj, sqrt
from tensord._array_products import matmul, outer, tensordot, vecdot
from tensord._array_session import tensor_of
from tensord._conversions import converted
from tensord._stages import IntOrInts, axes_of
from tensord._subscripts import letters
from tensord.errors import InvalidArgument, Unimplemented

_TRUNCATION = (
    "rank",
    "cutoff",
    "relative_cutoff",
    "discarded_squares",
    "relative_discarded_squares",
    "renormalize",
    "randomized",
    "oversampling",
    "power_iterations",
    "seed",
    "algorithm",
    "workspace_limit_bytes",
    "deterministic",
    "selection",
    "timeout",
)


class QRResult(NamedTuple):
    """Factors of matrices, `Q @ R`."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Factors of matrices, `U @ diag(S) @ Vh`."""

    U: Any
    S: Any
    Vh: Any


class EighResult(NamedTuple):
    """Factors of Hermitian matrices, `V @ diag(w) @ V^H`."""

    eigenvalues: Any
    eigenvectors: Any


def qr(x: Any, /, mode: str = "reduced") -> QRResult:
    """Computes QR factors; the diagonal of `R` is real and not negative."""
    if mode != "reduced":
        raise Unimplemented(
            f"mode is {mode!r}, wanted 'reduced'", reason="OPTION_UNSUPPORTED"
        )
    x, batch, row, column, inner = matrices(x)
    rows, columns = batch + row + inner, batch + inner + column
    text = f"{batch}{row}{column}->{rows},{columns}"
    return QRResult(*x.session.factorize(text, x, method="qr"))


def svd(
    x: Any, /, full_matrices: bool = False, compute_uv: bool = True, **options: Any
) -> Any:
    """Computes singular values, descending, and vectors.

    Args:
        x: The matrices.
        full_matrices: False; no more vectors are computed than there are values.
        compute_uv: Whether vectors are returned; else the values alone are.
        **options: As `Session.factorize` takes them: `rank`, `cutoff`, ...

    Returns:
        An `SVDResult`, or the values.
    """
    for name in options:
        if name not in _TRUNCATION:
            raise TypeError(
                f"svd has no argument {name!r}, wanted full_matrices, compute_uv, "
                + ", ".join(_TRUNCATION)
            )
    if full_matrices and compute_uv:
        raise Unimplemented(
            "full_matrices is True, wanted False", reason="OPTION_UNSUPPORTED"
        )
    x, batch, row, column, inner = matrices(x)
    factors = batch + row + inner, batch + inner, batch + inner + column
    text = f"{batch}{row}{column}->{','.join(factors)}"
    result = SVDResult(*x.session.factorize(text, x, method="svd", **options))
    return result if compute_uv else result.S


def svdvals(x: Any, /) -> Any:
    """Computes singular values, descending."""
    return svd(x, compute_uv=False)


def eigh(x: Any, /) -> EighResult:
    """Computes eigenvalues of Hermitian matrices, ascending, and vectors."""
    x, batch, row, column, inner = matrices(x, square=True)
    text = f"{batch}{row}{column}->{batch}{inner},{batch}{row}{inner}"
    return EighResult(*x.session.factorize(text, x, method="eigh"))


def eigvalsh(x: Any, /) -> Any:
    """Computes eigenvalues of Hermitian matrices, ascending."""
    return eigh(x).eigenvalues


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """Computes the lower triangle `l` of `l @ l^H`, or the upper one, conjugated."""
    x, batch, row, column, inner = matrices(x, square=True)
    text = f"{batch}{row}{column}->{batch}{row}{inner}"
    (lower,) = x.session.factorize(text, x, method="cholesky")
    return conj(lower).mT if upper else lower


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Returns a view of the diagonals of matrices."""
    return tensor_of(x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums the diagonals of matrices."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)


def vector_norm(
    x: Any,
    /,
    *,
    axis: IntOrInts | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Any:
    """Computes norms of vectors.

    Args:
        x: The numbers.
        axis: The modes that make up a vector; None for all.
        keepdims: Whether they stay, with extent 1.
        ord: Which norm: 2, 1, 0 (how many are not 0), inf, -inf or another power.
    """
    x = _floating(x)
    size = abs(x)
    if ord == math.inf:
        return size.max(axis, None, keepdims)
    if ord == -math.inf:
        return size.min(axis, None, keepdims)
    if ord == 0:
        return converted(x != 0, size.dtype).sum(axis, keepdims=keepdims)
    if ord == 1:
        return size.sum(axis, keepdims=keepdims)
    if ord == 2:
        if axis is None and not keepdims:
            return sqrt(tensordot(size, size, size.ndim))
        return sqrt((size * size).sum(axis, keepdims=keepdims))
    return (size**ord).sum(axis, keepdims=keepdims) ** (1 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Computes norms of matrices.

    Args:
        x: The matrices.
        keepdims: Whether their modes stay, with extent 1.
        ord: Which norm: "fro", "nuc", 2, -2, 1, -1, inf or -inf.
    """
    x = _floating(x)
    if x.ndim < 2:
        raise InvalidArgument(
            f"a tensor of shape {x.shape} has no matrices, wanted two modes or more",
            reason="MODE_COUNT_MISMATCH",
        )
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        result = _largest(values, -1, ord == 2) if ord != "nuc" else values.sum(-1)
    elif ord in (1, -1):
        result = _largest(abs(x).sum(-2), -1, ord == 1)
    elif ord in (math.inf, -math.inf):
        result = _largest(abs(x).sum(-1), -1, ord == math.inf)
    else:
        raise InvalidArgument(
            f"ord is {ord!r}, wanted 'fro', 'nuc', 2, -2, 1, -1, inf or -inf",
            reason="OPTION_OUT_OF_RANGE",
        )
    return result.expand_dims((-2, -1)) if keepdims else result


def norm(
    x: Any, /, ord: Any = None, axis: IntOrInts | None = None, keepdims: bool = False
) -> Any:
    """Computes norms as `numpy.linalg.norm` does."""
    x = tensor_of(x)
    if ord is None:
        return vector_norm(x, axis=axis, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axes_of("axis", axis, x.ndim)
    if len(axes) == 1 and isinstance(ord, str):
        raise InvalidArgument(
            f"norm {ord!r} is of matrices, but axis has one mode, wanted two",
            reason="MODE_COUNT_MISMATCH",
        )
    if len(axes) == 1:
        return vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise InvalidArgument(
            f"norm {ord!r} is of one mode or two, got {len(axes)}",
            reason="MODE_COUNT_MISMATCH",
        )
    result = matrix_norm(x.moveaxis(axes, (-2, -1)), ord=ord)
    return result.expand_dims(axes) if keepdims else result


def _largest(x: Any, axis: int, is_largest: bool) -> Any:
    return x.max(axis) if is_largest else x.min(axis)


def _floating(x: Any) -> Any:
    """Returns a tensor of numbers that have fractions."""
    x = tensor_of(x)
    return converted(x, np.dtype(np.float64)) if x.dtype.kind in "iub" else x


def matrices(x: Any, *, square: bool = False) -> tuple[Any, str, str, str, str]:
    """Returns matrices that can be factorized, and labels.

    Returns:
        The tensor; labels of its batch, rows and columns; one that it lacks.
    """
    x = _floating(x)
    if x.ndim < 2:
        raise InvalidArgument(
            f"a tensor of shape {x.shape} is no matrix, wanted two modes or more",
            reason="MODE_COUNT_MISMATCH",
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(
            f"a tensor of shape {x.shape} has no square matrices, wanted the last two "
            "extents equal",
            reason="MATRIX_NOT_SQUARE",
        )
    labels = letters(x.ndim + 1)
    return x, labels[3:], labels[0], labels[1], labels[2]


__all__ = [
    "cholesky",
    "diagonal",
    "eigh",
    "eigvalsh",
    "matmul",
    "matrix_norm",
    "matrix_transpose",
    "norm",
    "outer",
    "qr",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

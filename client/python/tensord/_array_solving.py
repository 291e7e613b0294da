"""Linear equations of `tensord.array.linalg`, by QR, products and small SVDs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._array_layout import concat, tril, triu
from tensord._array_linalg import matrices, qr, svd, svdvals
from tensord._array_numbers import conj, where
from tensord._array_session import tensor_of
from tensord._conversions import converted
from tensord.errors import InvalidArgument

# Triangles of up to so many rows are solved at once, by their singular values.
_LARGEST_BLOCK = 64

_TRANSPOSITIONS = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def solve(x1: Any, x2: Any, /) -> Any:
    """Solves `x1 @ x = x2`.

    Nothing says that a matrix is singular, which NumPy raises for: that would download.
    The result is infinite, no number, or very large then.

    Args:
        x1: Square matrices.
        x2: What the products are: a vector if it has one mode, else matrices.
    """
    x1, x2 = _operands(x1, x2)
    q, r = qr(x1)
    is_vector = x2.ndim == 1
    right = _adjoint(q) @ (x2[:, None] if is_vector else x2)
    result = _substituted(r, right, False)
    return result[..., 0] if is_vector else result


def inv(x: Any, /) -> Any:
    """Computes inverses; those of singular matrices as `solve` does."""
    x = matrices(x, square=True)[0]
    return solve(x, np.eye(x.shape[-1], dtype=x.dtype))


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Computes pseudo-inverses.

    Args:
        x: The matrices.
        rtol: Which singular values are taken for 0, relative to the largest one; None
            for the larger extent times the distance of 1 to the next number.
    """
    u, s, v = svd(x)
    limit = _limit(s, max(u.shape[-2], v.shape[-1]), rtol)
    inverse = where(s > limit, 1 / where(s > limit, s, 1), 0)
    return _adjoint(v) @ (inverse[..., :, None] * _adjoint(u))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Counts the singular values that are not taken for 0, see `pinv`."""
    x = matrices(x)[0]
    s = svdvals(x)
    return (s > _limit(s, max(x.shape[-2:]), rtol)).sum(-1)


def matrix_power(x: Any, n: int, /) -> Any:
    """Multiplies matrices with themselves, `n` factors; of their inverses, if `n` < 0."""
    x = tensor_of(x)
    matrices(x, square=True)
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return x * 0 + np.eye(x.shape[-1], dtype=x.dtype)
    result: Any = None
    while n:
        if n % 2:
            result = x if result is None else result @ x
        n //= 2
        x = x @ x if n else x
    return result.copy() if result is x else result


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Solves `a @ x = b` as SciPy's function of this name; `a` has batches, too.

    Args:
        a: Matrices, of which one triangle is read.
        b: What the products are: a vector if it has one mode, else matrices.
        trans: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its adjoint.
        lower: Which triangle it is.
        unit_diagonal: Whether the diagonal is taken to be ones.
        overwrite_b, check_finite: Nothing is overwritten, nor checked, which would
            download.
    """
    if trans not in _TRANSPOSITIONS:
        raise InvalidArgument(
            f"trans is {trans!r}, wanted 0, 1, 2, 'N', 'T' or 'C'",
            reason="OPTION_OUT_OF_RANGE",
        )
    a, b = _operands(a, b)
    triangle = tril(a) if lower else triu(a)
    if unit_diagonal:
        triangle = where(np.eye(a.shape[-1], dtype=np.bool_), 1, triangle)
    form = _TRANSPOSITIONS[trans]
    if form:
        triangle, lower = triangle.mT if form == 1 else _adjoint(triangle), not lower
    is_vector = b.ndim == 1
    result = _substituted(triangle, b[:, None] if is_vector else b, lower)
    return result[..., 0] if is_vector else result


def _substituted(a: Any, b: Any, lower: bool) -> Any:
    """Solves equations with a triangle: one half, what it takes from the other, that."""
    extent = a.shape[-1]
    if extent <= _LARGEST_BLOCK:
        u, s, v = svd(a)
        return _adjoint(v) @ ((_adjoint(u) @ b) / s[..., :, None])
    half = extent // 2
    parts = [slice(half), slice(half, None)]
    first, then = parts if lower else parts[::-1]
    known = _substituted(a[..., first, first], b[..., first, :], lower)
    rest = b[..., then, :] - a[..., then, first] @ known
    found = [known, _substituted(a[..., then, then], rest, lower)]
    return concat(found if lower else found[::-1], axis=-2)


def _operands(a: Any, b: Any) -> tuple[Any, Any]:
    """Returns square matrices and right sides, of one dtype that has fractions."""
    a, b = tensor_of(a, b), tensor_of(b, a)
    a = matrices(a, square=True)[0]
    dtype = dtypes.wire_dtype(np.result_type(a.dtype, b.dtype))
    rows = b.shape[0 if b.ndim == 1 else -2] if b.ndim else 0
    if not b.ndim or rows != a.shape[-1]:
        raise InvalidArgument(
            f"matrices of shape {a.shape} have right sides of shape {b.shape}, wanted "
            f"{a.shape[-1]} rows",
            reason="MODE_EXTENT_MISMATCH",
        )
    a, b = (each if each.dtype == dtype else converted(each, dtype) for each in (a, b))
    return a, b


def _limit(s: Any, extent: int, rtol: Any) -> Any:
    """Up to where singular values are taken for 0."""
    if rtol is None:
        rtol = extent * float(np.finfo(s.dtype).eps)
    elif hasattr(rtol, "shape") and rtol.shape:
        rtol = tensor_of(rtol, s)[..., None]
    return s.max(-1, None, True) * rtol


def _adjoint(x: Any) -> Any:
    return conj(x).mT if x.dtype.kind == "c" else x.mT


__all__ = ["inv", "matrix_power", "matrix_rank", "pinv", "solve", "solve_triangular"]

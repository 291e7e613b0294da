"""Linear equations of `tensord.array.linalg`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._array_layout import broadcast_to
from tensord._array_linalg import matrices, svd, svdvals
from tensord._array_numbers import conj, where
from tensord._array_session import tensor_of
from tensord._conversions import converted
from tensord._subscripts import letters
from tensord.errors import InvalidArgument

_TRANSPOSITIONS = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def solve(x1: Any, x2: Any, /) -> Any:
    """Solves `x1 @ x = x2`.

    Args:
        x1: Square matrices.
        x2: What the products are: a vector if it has one mode, else matrices.

    Raises:
        InvalidArgument: A matrix is singular (`MATRIX_SINGULAR`), or holds NaN or is
            infinite (`MATRIX_NOT_FINITE`).
    """
    return _solved(x1, x2, "general")


def inv(x: Any, /) -> Any:
    """Computes inverses.

    Raises:
        InvalidArgument: As `solve`.
    """
    x, batch, row, column, other = matrices(x, square=True)
    return x.session.solve(f"{batch}{row}{column}->{batch}{column}{other}", x)


def expm(x: Any, /) -> Any:
    """Computes exponentials of matrices, as `scipy.linalg.expm`.

    Raises:
        InvalidArgument: As `Session.expm`.
    """
    x, batch, row, column, other = matrices(x, square=True)
    return x.session.expm(f"{batch}{row}{column}->{batch}{row}{other}", x)


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
        overwrite_b: Nothing is overwritten.
        check_finite: The server looks at `a`, always, and not at `b`.

    Raises:
        InvalidArgument: As `solve`.
    """
    if trans not in _TRANSPOSITIONS:
        raise InvalidArgument(
            f"trans is {trans!r}, wanted 0, 1, 2, 'N', 'T' or 'C'",
            reason="OPTION_OUT_OF_RANGE",
        )
    form = _TRANSPOSITIONS[trans]
    is_lower = bool(lower) != (form > 0)
    return _solved(
        a,
        b,
        "lower_triangular" if is_lower else "upper_triangular",
        is_transposed=form > 0,
        unit_diagonal=bool(unit_diagonal),
        op_a="conj" if form == 2 else None,
    )


def _solved(
    a: Any, b: Any, structure: str, *, is_transposed: bool = False, **options: Any
) -> Any:
    """Solves equations by one request; what is broadcast is so first."""
    a, b = _operands(a, b)
    is_vector = b.ndim == 1
    own = () if is_vector else b.shape[:-2]
    if 2 < a.ndim <= 2 + len(own) and math.prod(a.shape[:-2]) == 1:
        a = a.reshape(a.shape[-2:])  # One matrix for all right sides.
    batch = a.shape[:-2]
    if batch:
        batch = np.broadcast_shapes(batch, own)
        a = _of_shape(a, batch + a.shape[-2:])
        b = _of_shape(b, batch + b.shape[-1 if is_vector else -2 :])
    labels = letters(3 + max(len(batch), len(own)))
    row, column, side, more = labels[0], labels[1], labels[2], labels[3:]
    matrix = column + row if is_transposed else row + column
    side = "" if is_vector else side
    text = f"{more[: len(batch)]}{matrix},{more}{row}{side}->{more}{column}{side}"
    return a.session.solve(text, a, b, structure=structure, **options)


def _of_shape(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == shape else broadcast_to(x, shape)


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

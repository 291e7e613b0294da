"""Functions of `tensord.array` that look at elements in their order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensord._array_indices import take
from tensord._array_numbers import isfinite, isnan, where
from tensord._array_scans import sort
from tensord._array_session import tensor_of
from tensord._conversions import converted, refuse_tensors
from tensord._dtypes import is_floating
from tensord._stages import IntOrInts, axes_of
from tensord.errors import Unimplemented

# Of NumPy's ways, those that are one of two elements, or lie between them, at the place
# `q * (n - 1)`.
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def median(
    a: Any, axis: IntOrInts | None = None, out: None = None, *, keepdims: bool = False
) -> Any:
    """Computes the middle element over modes, or the mean of the two in the middle."""
    return percentile(a, 50.0, axis, out, keepdims=keepdims)


def quantile(
    a: Any,
    q: Any,
    axis: IntOrInts | None = None,
    out: None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Computes what parts of the elements over modes are not above, see `percentile`.

    Args:
        a, axis, out, method, keepdims: As `percentile` takes them.
        q: The parts, from 0 to 1.
    """
    refuse_tensors("q", q)
    parts = np.asarray(q, np.float64)
    if not np.all((parts >= 0) & (parts <= 1)):
        raise ValueError(f"q is {q}, wanted 0 to 1")
    return _quantiles(a, parts, axis, out, method, keepdims)


def percentile(
    a: Any,
    q: Any,
    axis: IntOrInts | None = None,
    out: None = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """Computes what so many of a hundred elements over modes are not above.

    Args:
        a: Real numbers.
        q: How many, from 0 to 100: a number, or several, which are the first modes of
            the result then.
        axis: Over which modes; None for all.
        out: None.
        method: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: Whether these modes stay, with extent 1.

    Returns:
        NaN where one of the elements is NaN, or there are none.

    Raises:
        Unimplemented: Another method (`OPTION_UNSUPPORTED`).
    """
    refuse_tensors("q", q)
    parts = np.asarray(q, np.float64) / 100
    if not np.all((parts >= 0) & (parts <= 1)):
        raise ValueError(f"q is {q}, wanted 0 to 100")
    return _quantiles(a, parts, axis, out, method, keepdims)


def _quantiles(
    a: Any, parts: np.ndarray, axis: Any, out: Any, method: str, keepdims: bool
) -> Any:
    if method not in _METHODS:
        raise Unimplemented(
            f"method is {method!r}, wanted one of {', '.join(_METHODS)}: nothing else "
            "is computed on the server",
            reason="OPTION_UNSUPPORTED",
        )
    if out is not None:
        raise Unimplemented("out is given, wanted None", reason="OPTION_UNSUPPORTED")
    a = tensor_of(a)
    if a.dtype.kind == "c":
        raise TypeError(f"numbers of {a.dtype} have no order, wanted real ones")
    axes = range(a.ndim) if axis is None else axes_of("axis", axis, a.ndim)
    others = [i for i in range(a.ndim) if i not in axes]
    shape = tuple(1 if i in axes else a.shape[i] for i in range(a.ndim))
    count = math.prod(a.shape[i] for i in axes)
    kept = [a.shape[i] for i in others]
    if count == 0:
        dtype = a.dtype if is_floating(a.dtype) else np.float64
        nothing = np.full((), math.nan, dtype)
        extents = (*parts.shape, *(shape if keepdims else kept))
        return tensor_of(nothing, a).broadcast_to(extents).copy()
    ordered = sort(a.transpose([*others, *axes]).reshape([*kept, count]), axis=-1)
    # As NumPy: several parts are float64, and a number takes the type of elements.
    is_wide = parts.ndim > 0 or a.dtype.kind in "iub"
    if method in ("linear", "midpoint") and is_wide:
        ordered = converted(ordered, np.dtype(np.float64))
    values = _between(ordered, parts.reshape(-1), method)
    if is_floating(a.dtype):
        last = ordered[..., -1:]  # NaN is above all.
        values = where(isnan(last), last, values)
    values = values.moveaxis(-1, 0)
    return values.reshape((*parts.shape, *(shape if keepdims else kept)))


def _between(ordered: Any, parts: np.ndarray, method: str) -> Any:
    """What is at parts of the last mode, whose elements ascend."""
    places = parts * (ordered.shape[-1] - 1)
    if method == "nearest":
        return take(ordered, np.rint(places).astype(np.int64), axis=-1)
    below, above = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
    if method == "lower":
        return take(ordered, below, axis=-1)
    if method == "higher":
        return take(ordered, above, axis=-1)
    low, high = take(ordered, below, axis=-1), take(ordered, above, axis=-1)
    far = places - below if method == "linear" else np.where(below == above, 0, 0.5)
    far = far.astype(ordered.dtype)
    distance = high - low
    between = where(
        isfinite(distance), low + distance * far, low * (1 - far) + high * far
    )
    # Equal infinities have no difference.
    return where(low == high, low, between)


__all__ = ["median", "percentile", "quantile"]

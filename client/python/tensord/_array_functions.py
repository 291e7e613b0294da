"""What NumPy's functions, and opt_einsum, do with tensors on a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from tensord import (
    _array_creation,
    _array_indices,
    _array_layout,
    _array_linalg,
    _array_nan,
    _array_numbers,
    _array_products,
    _array_quantiles,
    _array_scans,
    _array_solving,
    _array_statistics,
)
from tensord import _dtypes as dtypes
from tensord._elementwise import is_operand, session_of
from tensord._tensor_handle import TensorHandle


def einsum(subscripts: Any, *operands: Any, **options: Any) -> Any:
    """Computes `Session.einsum` in the session of the operands.

    This, `tensordot` and `transpose` make the package a backend of opt_einsum, which
    `opt_einsum.contract` chooses for RemoteTensors by itself. Of arrays alone, they
    compute what NumPy's do, here.

    Args:
        subscripts, *operands, **options: As `Session.einsum` takes them.
    """
    if session_of(subscripts, *operands, options.get("out")) is None:
        return np.einsum(subscripts, *operands, **options)
    return _array_products.einsum(subscripts, *operands, **options)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Computes what `numpy.tensordot` does, see `einsum`."""
    if session_of(a, b) is None:
        return np.tensordot(a, b, axes)
    return _array_products.tensordot(a, b, axes)


def transpose(a: Any, axes: Any = None) -> Any:
    """Makes a view with the modes in another order, `RemoteTensor.transpose`."""
    return np.transpose(a, axes) if session_of(a) is None else a.transpose(axes)


class ArrayFunctions:
    """What becomes of a RemoteTensor that is passed to NumPy's functions.

    Those that `tensord.array` has are computed on the server, by its functions:
    `numpy.einsum`, `numpy.exp(t)`, `numpy.add(array, t, out=u)`, `array + t`. Others raise
    TypeError: nothing is downloaded that nobody asked for. `numpy.asarray(t)` and
    `t.numpy()` ask for it.
    """

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if not all(map(_is_known, types)):
            return NotImplemented
        here = _FUNCTIONS.get(function)
        if here is None:
            module = function.__module__.removeprefix("numpy").lstrip(".")
            raise _not_computed(f"{module}.{function.__name__}".lstrip("."))
        _refuse_arrays(function.__name__, [kwargs.get("out")])
        return here(*args, **kwargs)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        if method == "accumulate":
            outs = kwargs.pop("out", ())
            _refuse_arrays(f"{ufunc.__name__}.accumulate", outs)
            out = outs[0] if outs else None
            result = _array_scans.accumulate(ufunc, inputs[0], out=out, **kwargs)
            if result is not NotImplemented:
                return result
        if not all(is_operand(each) for each in inputs):
            return NotImplemented
        here = _UFUNCS.get(ufunc)
        if here is None or method != "__call__":
            name = (
                ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            )
            raise _not_computed(name)
        if "dtype" in kwargs and kwargs["dtype"] is None:
            del kwargs["dtype"]
        allowed = {"out", "axis"} if ufunc in _ANSWERS else {"out", "axis", "dtype"}
        if kwargs.keys() - allowed:
            raise _not_computed(f"{ufunc.__name__} with {', '.join(kwargs)}")
        if "dtype" in kwargs:
            inputs = _in_dtype(ufunc, inputs, kwargs.pop("dtype"))
        outs = kwargs.pop("out", ())
        _refuse_arrays(ufunc.__name__, outs)
        return here(*inputs, **kwargs, **({"out": outs[0]} if outs else {}))


def _in_dtype(ufunc: np.ufunc, operands: Any, dtype: Any) -> tuple[Any, ...]:
    """Operands in the dtype that NumPy would compute a ufunc in.

    Raises:
        TypeError: NumPy would not, or the result has another dtype.
    """
    wanted = dtypes.wire_dtype(dtype)
    known: list[Any] = [
        each if isinstance(each, TensorHandle) or _is_weak(each) else np.asarray(each)
        for each in operands
    ]
    like = [each if _is_weak(each) else np.empty(0, each.dtype) for each in known]
    with np.errstate(all="ignore"):
        expected = ufunc(*like, dtype=wanted).dtype
    for each in like:
        if _is_weak(each) or dtypes.can_cast(each.dtype, wanted, "same_kind"):
            continue
        raise _not_computed(f"{ufunc.__name__} of {each.dtype} with dtype={wanted}")
    cast = [
        np.array(each, wanted) if _is_weak(each) else each.astype(wanted, copy=False)
        for each in known
    ]
    if ufunc(*(np.ones(1, each.dtype) for each in cast)).dtype != expected:
        raise _not_computed(f"{ufunc.__name__} with dtype={wanted}")
    return tuple(cast)


def _is_weak(value: Any) -> bool:
    """Whether it is a number of Python's, which takes the dtype of others."""
    is_number = isinstance(value, (bool, int, float, complex))
    return is_number and not isinstance(value, np.generic)


def _is_known(kind: type) -> bool:
    return issubclass(kind, (TensorHandle, np.ndarray)) and not issubclass(
        kind, np.ma.MaskedArray
    )


def _not_computed(name: str) -> TypeError:
    return TypeError(
        f"numpy.{name} is not computed on the server, and would download the tensor: "
        "`tensord.array` has what is computed there, and `.numpy()` downloads"
    )


def _refuse_arrays(name: str, outs: Iterable[Any]) -> None:
    """Refuses arrays of this computer that are to receive results of the server."""
    for out in outs:
        if out is not None and not isinstance(out, TensorHandle):
            raise TypeError(
                f"numpy.{name} of a tensor on the server has out= of type "
                f"{type(out).__name__}, wanted a RemoteTensor; `.numpy()` downloads"
            )


def _of_module(prefix: str, module: ModuleType) -> dict[Any, Callable[..., Any]]:
    """NumPy's functions and what computes them, by the names of a module."""
    found = {}
    for name in module.__all__:
        owner: Any = getattr(np, prefix) if prefix else np
        function = getattr(owner, name, None)
        if function is not None:
            found[function] = getattr(module, name)
    return found


def _shape(a: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = a.shape
    return shape


def _ndim(a: Any) -> int:
    return len(a.shape)


def _size(a: Any, axis: int | None = None) -> int:
    return int(a.size if axis is None else a.shape[axis])


def _is_complex(x: Any) -> bool:
    return bool(x.dtype.kind == "c")


def _is_real(x: Any) -> bool:
    return not _is_complex(x)


def _result_type(*arrays_and_dtypes: Any) -> np.dtype:
    return np.result_type(
        *(
            each.dtype if isinstance(each, TensorHandle) else each
            for each in arrays_and_dtypes
        )
    )


def _can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    dtype = from_.dtype if isinstance(from_, TensorHandle) else from_
    return dtypes.can_cast(np.dtype(dtype), np.dtype(to), casting)


_ALL: dict[Any, Callable[..., Any]] = {
    **_of_module("", _array_creation),
    **_of_module("", _array_indices),
    **_of_module("", _array_layout),
    **_of_module("", _array_nan),
    **_of_module("", _array_numbers),
    **_of_module("", _array_products),
    **_of_module("", _array_quantiles),
    **_of_module("", _array_scans),
    **_of_module("", _array_statistics),
    **_of_module("linalg", _array_linalg),
    **_of_module("linalg", _array_solving),
    np.shape: _shape,
    np.ndim: _ndim,
    np.size: _size,
    np.iscomplexobj: _is_complex,
    np.isrealobj: _is_real,
    np.can_cast: _can_cast,
    np.result_type: _result_type,
}
_FUNCTIONS = {
    key: value for key, value in _ALL.items() if not isinstance(key, np.ufunc)
}
# Of these dtype= says nothing of what is computed in.
_ANSWERS = {
    ufunc
    for ufunc in _ALL
    if isinstance(ufunc, np.ufunc) and {"d->?", "dd->?"} & set(ufunc.types)
}
_UFUNCS = {key: value for key, value in _ALL.items() if isinstance(key, np.ufunc)}

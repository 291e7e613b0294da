"""NumPy's functions, and opt_einsum's, for tensors on a server."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tensord import _arithmetic as arithmetic
from tensord._arithmetic import matmul, session_of
from tensord._tensor_handle import TensorHandle


def einsum(subscripts: Any, *operands: Any, **options: Any) -> Any:
    """Computes `Session.einsum` in the session of the operands.

    This, `tensordot` and `transpose` make the package a backend of opt_einsum, which
    `opt_einsum.contract` chooses for RemoteTensors by itself. Of arrays alone, they
    compute what NumPy's do, here.

    Args:
        subscripts, *operands, **options: As `Session.einsum` takes them.
    """
    session = session_of(subscripts, *operands, options.get("out"))
    if session is None:
        return np.einsum(subscripts, *operands, **options)
    return session.einsum(subscripts, *operands, **options)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Computes what `numpy.tensordot` does, see `einsum`."""
    if session_of(a, b) is None:
        return np.tensordot(a, b, axes)
    return arithmetic.tensordot(a, b, axes)


def transpose(a: Any, axes: Any = None) -> Any:
    """Makes a view with the modes in another order, `RemoteTensor.transpose`."""
    return np.transpose(a, axes) if session_of(a) is None else a.transpose(axes)


class ArrayFunctions:
    """What becomes of a RemoteTensor that is passed to NumPy's functions.

    `numpy.einsum`, `tensordot` and `transpose` are computed on the server, and so is the
    arithmetic of arrays with tensors: `array + t`, `numpy.matmul(array, t)`. All others
    download the tensor and compute here. A tensor as `out=` is for what is computed on
    the server, `numpy.add(a, b, out=t)`; others raise TypeError.
    """

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        here = _FUNCTIONS.get(function)
        if here is not None:
            return here(*args, **kwargs)
        if function in _REDUCTIONS:
            if _has_tensor([*args[1:], *kwargs.values()]):
                raise _not_written(function.__name__)
            return function(*_downloaded(args), **_downloaded(kwargs))
        # As for arrays: it gets them where it asks for them.
        return np.empty(0).__array_function__(function, (), args, kwargs)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        options = dict(kwargs)
        out, *more = options.pop("out", (None,))
        is_written = _has_tensor([out, *more])
        here = _UFUNCS.get(ufunc)
        if here is not None and method == "__call__" and not options:
            if out is None or is_written:
                return here(*inputs, out=out)
        if is_written:
            raise _not_written(ufunc.__name__)
        return getattr(ufunc, method)(*_downloaded(inputs), **_downloaded(kwargs))


def _einsum_path(*operands: Any, **kwargs: Any) -> Any:
    """Finds NumPy's path, which depends on shapes alone."""
    return np.einsum_path(
        *(
            (
                np.broadcast_to(np.empty((), each.dtype), each.shape)
                if isinstance(each, TensorHandle)
                else each
            )
            for each in operands
        ),
        **kwargs,
    )


def _has_tensor(values: Iterable[Any]) -> bool:
    return any(isinstance(value, TensorHandle) for value in values)


def _not_written(function: str) -> TypeError:
    names = ", ".join(ufunc.__name__ for ufunc in _UFUNCS)
    return TypeError(
        f"numpy.{function} as it was called computes here, and cannot write into a "
        f"tensor on the server; einsum, {names} can, with out= alone, and `t[...] = "
        "result`"
    )


def _downloaded(value: Any) -> Any:
    """Returns a value with its tensors, those in lists and mappings too, as arrays."""
    if isinstance(value, TensorHandle):
        return np.asarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(_downloaded, value))
    if isinstance(value, Mapping):
        return {key: _downloaded(each) for key, each in value.items()}
    return value


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.einsum: einsum,
    np.einsum_path: _einsum_path,
    np.tensordot: tensordot,
    np.transpose: transpose,
}

# They would call the tensor's methods of the same names, which take fewer arguments.
_REDUCTIONS = {np.sum, np.prod, np.max, np.min, np.amax, np.amin, np.mean}

_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: functools.partial(arithmetic.binary, operator="add"),
    np.subtract: functools.partial(arithmetic.binary, operator="sub"),
    np.multiply: functools.partial(arithmetic.binary, operator="mul"),
    np.true_divide: functools.partial(arithmetic.binary, operator="div"),
    np.matmul: matmul,
    np.positive: functools.partial(arithmetic.mapped, operator=operator.pos),
    np.negative: functools.partial(arithmetic.mapped, operator=operator.neg),
    np.conjugate: functools.partial(
        arithmetic.mapped, operator=operator.methodcaller("conj")
    ),
}

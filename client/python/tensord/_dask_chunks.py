"""What Dask has to know of tensors to take them as chunks of its arrays."""

from __future__ import annotations

import math
import operator
import uuid
from typing import Any

import dask.array
import numpy as np
from dask import config
from dask.array import Array, chunk_types, dispatch
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.sizeof import sizeof
from dask.tokenize import TokenizationError, normalize_token

import tensord.array as xp
from tensord._array_layout import check_order
from tensord._stages import axes_of
from tensord._tensor import RemoteTensor

# Most of Dask has no types.
da: Any = dask.array


def from_array(x: Any, chunks: Any = "auto", **options: Any) -> Array:
    """Returns a Dask array whose chunks are on a server once they are computed.

    Args:
        x: What `dask.array.from_array` takes. The graph keeps it.
        chunks: As `dask.array.from_array` takes them.
        **options: Its others.
    """
    array: Array = da.from_array(x, chunks=chunks, **options)
    return TensordBackend.to_backend(array)


class TensordBackend(ArrayBackendEntrypoint):
    """What makes arrays of tensors under Dask's option `array.backend`."""

    @classmethod
    def to_backend_dispatch(cls) -> Any:
        """Returns what makes a tensor of a chunk."""
        return xp.asarray

    @staticmethod
    def to_backend(data: Array, **kwargs: Any) -> Array:
        """Returns an array of the same elements in tensors."""
        if _has_tensors(data):
            return data
        meta = xp.empty((0,) * data.ndim, data.dtype)
        made: Array = da.map_blocks(xp.asarray, data, meta=meta, **kwargs)
        return made

    @property
    def RandomState(self) -> Any:
        """That of NumPy: chunks of random numbers are arrays."""
        return np.random.RandomState

    @property
    def default_bit_generator(self) -> Any:
        """That of NumPy, too."""
        return np.random.PCG64

    @staticmethod
    def ones(*args: Any, **kwargs: Any) -> Array:
        """Makes `dask.array.ones` of tensors."""
        return _created("ones", *args, **kwargs)

    @staticmethod
    def zeros(*args: Any, **kwargs: Any) -> Array:
        """Makes `dask.array.zeros` of tensors."""
        return _created("zeros", *args, **kwargs)

    @staticmethod
    def empty(*args: Any, **kwargs: Any) -> Array:
        """Makes `dask.array.empty` of tensors."""
        return _created("empty", *args, **kwargs)

    @staticmethod
    def full(*args: Any, **kwargs: Any) -> Array:
        """Makes `dask.array.full` of tensors."""
        return _created("full", *args, **kwargs)

    @staticmethod
    def arange(*args: Any, like: Any = None, **kwargs: Any) -> Array:
        """Makes `dask.array.arange` of tensors."""
        like = xp.empty(0) if like is None else like
        make: Any = array_creation_dispatch.dispatch("numpy")
        made: Array = make.arange(*args, like=like, **kwargs)
        return made


def _has_tensors(array: Any) -> bool:
    """Whether Dask knows that the chunks are tensors."""
    return isinstance(da.utils.meta_from_array(array), RemoteTensor)


def _created(name: str, /, *args: Any, meta: Any = None, **kwargs: Any) -> Array:
    meta = xp.empty(0) if meta is None else meta
    make = getattr(array_creation_dispatch.dispatch("numpy"), name)
    made: Array = make(*args, meta=meta, **kwargs)
    return made


def _einsum(*operands: Any, **options: Any) -> Any:
    """Computes what `numpy.einsum` does; Dask always names an order and a casting."""
    known = {name: options.pop(name, None) for name in ("dtype", "casting", "order")}
    check_order(known["order"])
    if known["dtype"] is not None:
        options |= {"dtype": known["dtype"], "casting": known["casting"] or "safe"}
    return xp.einsum(*operands, **options)


def _divide(x1: Any, x2: Any, out: Any = None, dtype: Any = None) -> Any:
    """Divides as `numpy.divide`, in a dtype."""
    return np.divide(x1, x2, out=out, dtype=dtype)


def _numel(
    x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = np.float64
) -> Any:
    """Counts elements over modes."""
    axes = range(x.ndim) if axis is None else axes_of("axis", axis, x.ndim)
    counted = math.prod(x.shape[i] for i in axes)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    left = [n for i, n in enumerate(shape) if keepdims or i not in axes]
    return xp.full_like(x, counted, dtype, shape=left)


def _nannumel(
    x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> Any:
    """Counts elements over modes that are numbers."""
    return (x == x).sum(axis, dtype, keepdims=keepdims)


def _percentile(a: Any, q: Any, method: str = "linear") -> tuple[Any, int]:
    """Percentiles of a chunk, and of how many elements: Dask merges them here."""
    if not len(a):
        return None, 0
    return xp.percentile(a, np.asarray(q), method=method).numpy(), len(a)


def _to_numpy(data: Any, **kwargs: Any) -> np.ndarray:
    return xp.to_numpy(data)


def _computed(results: Any) -> Any:
    """Downloads the chunks of an array that are tensors, and puts all together."""
    return da.core.finalize(_downloaded(results))


def _downloaded(results: Any) -> Any:
    if isinstance(results, RemoteTensor):
        return results.numpy()[()]
    if type(results) in (list, tuple):  # Others may be chunks.
        return [_downloaded(each) for each in results]
    return results


def _postcompute(self: Any) -> Any:
    # Dask does not always know what chunks are.
    return _computed, ()


def _token(tensor: RemoteTensor) -> Any:
    """What stands for a tensor in names of tasks; elements may be overwritten."""
    if not tensor.size:
        return "tensord", str(tensor.dtype), tensor.shape
    if config.get("tokenize.ensure-deterministic"):
        raise TokenizationError(f"tensor {tensor.name} may be overwritten")
    return uuid.uuid4().hex


def _register() -> None:
    """Makes tensors chunks, once.

    Raises:
        RuntimeError: Dask's arrays are those of expressions, which are not finished.
    """
    if da.array_expr_enabled():
        raise RuntimeError(
            "Dask's option array.query-planning is on, wanted off: tensord.dask makes "
            "tensors chunks of the arrays that Dask has by default"
        )
    types: Any = chunk_types
    types.register_chunk_type(RemoteTensor)
    lookups: dict[Any, Any] = {
        dispatch.concatenate_lookup: xp.concatenate,
        dispatch.divide_lookup: _divide,
        dispatch.einsum_lookup: _einsum,
        dispatch.empty_lookup: xp.empty,
        dispatch.nannumel_lookup: _nannumel,
        dispatch.numel_lookup: _numel,
        dispatch.percentile_lookup: _percentile,
        dispatch.take_lookup: xp.take,
        dispatch.tensordot_lookup: xp.tensordot,
        dispatch.to_numpy_dispatch: _to_numpy,
    }
    for lookup, function in lookups.items():
        lookup.register(RemoteTensor, function)
    tokens: Any = normalize_token
    tokens.register(RemoteTensor, _token)
    sizes: Any = sizeof
    sizes.register(RemoteTensor, operator.attrgetter("nbytes"))
    array_creation_dispatch.register_backend("tensord", TensordBackend())
    # Dask asks nobody what becomes of chunks when an array is computed.
    da.Array.__dask_postcompute__ = _postcompute


_register()

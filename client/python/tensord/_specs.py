"""What tensors are like, without their elements."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import extents_of, integers_of
from tensord._arrays import array_of, flat_bytes, packed_layout
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2, plan_pb2, program_pb2, tensor_pb2


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """What a tensor is like; an operand of `session.plan` and `session.explain`.

    >>> spec = tensord.TensorSpec((500, 40), "float32")
    >>> session.plan.contract(spec, "ik", spec, "jk", "ij")

    Attributes:
        shape: Extents.
        dtype: NumPy's dtype.
        strides: Bytes from one element to the next along each mode; None when the
            elements follow each other in C order.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...] | None = None

    def __init__(
        self,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        """
        Raises:
            InvalidArgument: Tensors cannot have this shape, dtype or these strides.
            TypeError: They are of the wrong types.
        """
        extents = extents_of(shape)
        known = dtypes.wire_dtype(dtype)
        if strides is not None:
            strides = _own_strides(integers_of("strides", strides), extents, known)
        object.__setattr__(self, "shape", extents)
        object.__setattr__(self, "dtype", known)
        object.__setattr__(self, "strides", strides)

    @property
    def repeats(self) -> bool:
        """Whether one element has several indices."""
        return self.strides is not None and any(
            stride == 0 and extent > 1
            for extent, stride in zip(self.shape, self.strides)
        )

    @property
    def span_bytes(self) -> int:
        """Bytes of memory from the first to the last element."""
        if 0 in self.shape:
            return 0
        if self.strides is None:
            return math.prod(self.shape) * self.dtype.itemsize
        last = sum(
            (extent - 1) * stride for extent, stride in zip(self.shape, self.strides)
        )
        return last + self.dtype.itemsize

    def laid_out(self, array: np.ndarray) -> np.ndarray:
        """Returns the memory of such a tensor from its first to its last element.

        Args:
            array: Its elements.

        Returns:
            uint8, shape (span_bytes,).
        """
        if self.strides is None or array.size == 0:
            return flat_bytes(array)
        data = np.zeros(self.span_bytes, np.uint8)
        np.ndarray(self.shape, self.dtype, data, strides=self.strides)[...] = array
        return data

    def layout_message(self) -> tensor_pb2.Layout:
        """Returns where the elements lie, as it travels."""
        if self.strides is None:
            return packed_layout(self.shape)
        size = self.dtype.itemsize
        strides = [stride // size for stride in self.strides]
        return tensor_pb2.Layout(extents=self.shape, strides=strides)

    def inline_message(self) -> compute_pb2.InlineTensor:
        """Returns a tensor that is described only, as it travels."""
        return compute_pb2.InlineTensor(
            element_type=dtypes.element_type_of(self.dtype),
            layout=self.layout_message(),
        )

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        raise TypeError(
            "got a TensorSpec, which has no elements, wanted a RemoteTensor or an array"
        )

    def __str__(self) -> str:
        strides = "" if self.strides is None else f" with strides {self.strides}"
        return f"{self.dtype} {self.shape}{strides}"


def spec_of(value: Any) -> TensorSpec:
    """Returns what an operand that is here is like once it has been sent.

    Args:
        value: A TensorSpec, or what `array_of` takes.
    """
    if isinstance(value, TensorSpec):
        return value
    return packed_spec(array_of(value))


def packed_spec(array: np.ndarray) -> TensorSpec:
    """Returns what a tensor is like that has an array's shape and dtype."""
    return _packed_spec(array.shape, array.dtype)


@functools.lru_cache(maxsize=4096)
def _packed_spec(shape: tuple[int, ...], dtype: np.dtype) -> TensorSpec:
    return TensorSpec(shape, dtype)


def spec_of_message(
    message: plan_pb2.PlanOperand | program_pb2.ProgramTensor,
) -> TensorSpec:
    """Returns what an operand of a plan or program has to be like."""
    dtype = dtypes.dtype_of(message.element_type)
    extents = tuple(message.layout.extents)
    strides = tuple(stride * dtype.itemsize for stride in message.layout.strides)
    return TensorSpec(extents, dtype, strides)


def packed_strides(shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    return tuple(
        dtype.itemsize * math.prod(shape[position + 1 :])
        for position in range(len(shape))
    )


def _own_strides(
    strides: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype
) -> tuple[int, ...] | None:
    """Returns strides, or None where they say no more than the shape.

    Raises:
        InvalidArgument: They do not fit the shape or the dtype.
    """
    if len(strides) != len(shape):
        raise InvalidArgument(
            f"strides has {len(strides)} numbers for {len(shape)} modes, wanted one "
            "for each",
            reason="MODE_COUNT_MISMATCH",
        )
    for stride in strides:
        if stride % dtype.itemsize != 0:
            raise InvalidArgument(
                f"strides has {stride} bytes, wanted a multiple of the "
                f"{dtype.itemsize} bytes of {dtype}",
                reason="STRIDE_NOT_MULTIPLE",
            )
    if 0 in shape or strides == packed_strides(shape, dtype):
        return None
    return strides

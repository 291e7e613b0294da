"""Arithmetic with tensors on the server, as NumPy writes it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arrays import array_of
from tensord._blocking_link import BlockingLink
from tensord._conversions import Tensor, check_fits, converted, is_permuted, stored
from tensord._stages import IntOrInts, axes_of
from tensord._subscripts import letters
from tensord._tensor_handle import TensorHandle, TensorSession
from tensord._views import Views
from tensord.errors import InvalidArgument, Unimplemented

if TYPE_CHECKING:
    from typing_extensions import Self

# Of ml_dtypes' numbers, NumPy says that they are of no kind.
_REAL_FLOATS = tuple(map(np.dtype, ("f2", "f4", "f8"))) + (dtypes.bfloat16,)


class Arithmetic(Views, TensorHandle):
    """Operators and methods of a tensor that compute new ones on the server.

    Operands are tensors of its session, arrays and numbers; shapes are broadcast as in
    NumPy, and dtypes promoted: arrays are converted here, numbers take the tensor's
    dtype where they can, tensors are converted on the server, integers among them. What
    is computed in place, `t += x`, is rounded to the tensor's dtype within its kind.

    Quotients are products with a reciprocal: their last bit may differ from NumPy's, and
    divisors below 1e-308 (1e-38 in float32) give infinity. Among the elements of a
    complex divisor, those and zeros may give nan instead.

    The server compares no elements: `t == x`, `t < x` and so on raise TypeError where x
    is a tensor, an array or a number. `numpy.equal(t, x)` compares here, and so does
    `array == t`; `a is b` says whether two are one object. Only `t == t` is True, as `in`
    and weak references want it, and `t == None` is False, like any `==` with what is no
    operand. Tensors are hashed as objects.

    All of them raise:
        InvalidArgument: Shapes do not fit together (`MODE_EXTENT_MISMATCH`).
        OverflowError: One of Python's integers is beyond the dtype.
        TypeError: What is computed in place is of another kind.
        Unimplemented: The server does not convert or compute these dtypes, e.g.
            bfloat16 to others and integers to narrower ones.
    """

    session: TensorSession[Self, BlockingLink]

    # NumPy's arrays leave operators to `__array_ufunc__`, see array_functions.py.

    def __add__(self, other: Any) -> Any:
        return binary(self, other, "add")

    def __radd__(self, other: Any) -> Any:
        return binary(other, self, "add")

    def __sub__(self, other: Any) -> Any:
        return binary(self, other, "sub")

    def __rsub__(self, other: Any) -> Any:
        return binary(other, self, "sub")

    def __mul__(self, other: Any) -> Any:
        return binary(self, other, "mul")

    def __rmul__(self, other: Any) -> Any:
        return binary(other, self, "mul")

    def __truediv__(self, other: Any) -> Any:
        return binary(self, other, "div")

    def __rtruediv__(self, other: Any) -> Any:
        return binary(other, self, "div")

    def __iadd__(self, other: Any) -> Any:
        return binary(self, other, "add", self)

    def __isub__(self, other: Any) -> Any:
        return binary(self, other, "sub", self)

    def __imul__(self, other: Any) -> Any:
        return binary(self, other, "mul", self)

    def __itruediv__(self, other: Any) -> Any:
        return binary(self, other, "div", self)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other) if _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self) if _is_operand(other) else NotImplemented

    def __eq__(self, other: object) -> Any:
        return True if other is self else _compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return False if other is self else _compared(other, "!=")

    def __lt__(self, other: Any) -> Any:
        return _compared(other, "<")

    def __le__(self, other: Any) -> Any:
        return _compared(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return _compared(other, ">")

    def __ge__(self, other: Any) -> Any:
        return _compared(other, ">=")

    __hash__ = object.__hash__

    def __pos__(self) -> Self:
        if self.dtype == np.bool_:
            raise TypeError("bools have no sign")
        return _mapped(self, None)

    def __neg__(self) -> Self:
        if self.dtype == np.bool_:
            raise TypeError("bools have no negative")
        return _mapped(self, "neg")

    def __abs__(self) -> Self:
        if self.dtype.kind == "c":
            raise Unimplemented(
                f"the absolute values of {self.dtype} are not computed on the server, "
                "wanted a real dtype",
                reason="TYPES_NOT_SUPPORTED",
            )
        return _mapped(self, "abs")

    def __pow__(self, exponent: Any) -> Any:
        """Computes squares, `t ** 2`; roots, `t ** 0.5`; and reciprocals, `t ** -1`."""
        is_number = isinstance(exponent, numbers.Number)
        if not is_number:
            return NotImplemented
        if self.dtype.kind in "iub" and not isinstance(exponent, numbers.Integral):
            return converted(self, np.dtype(np.float64)) ** exponent
        if exponent == 2:
            return self * self
        operators: dict[Any, str] = {0.5: "sqrt", -1: "rcp"}
        operator = operators.get(exponent)
        if operator is None or self.dtype not in _REAL_FLOATS:
            raise Unimplemented(
                f"{self.dtype} to the power of {exponent} is not computed on the server, "
                "wanted 2, or 0.5 or -1 of real floating-point numbers",
                reason="OPERATOR_UNKNOWN",
            )
        return _mapped(self, operator)

    def conj(self) -> Self:
        """Computes the complex conjugate."""
        return _mapped(self, "conj")

    conjugate = conj

    def sum(
        self,
        axis: IntOrInts | None = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
    ) -> Self:
        """Sums over modes.

        Args:
            axis: Which ones; None for all.
            dtype: In which it is computed; None for that of `out`, else int64 for
                integers and bools (also uint8, as there is no uint64), else the
                tensor's. Sums of integers wrap.
            out: Existing tensor that receives the result.
            keepdims: Whether summed modes stay, with extent 1.
        """
        return self._reduced("add", axis, dtype, out, keepdims)

    def prod(
        self,
        axis: IntOrInts | None = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
    ) -> Self:
        """Multiplies over modes; arguments are those of `sum`."""
        return self._reduced("mul", axis, dtype, out, keepdims)

    def max(
        self,
        axis: IntOrInts | None = None,
        out: Self | None = None,
        keepdims: bool = False,
    ) -> Self:
        """Returns the largest elements over modes; arguments are those of `sum`."""
        return self._reduced("max", axis, None, out, keepdims)

    def min(
        self,
        axis: IntOrInts | None = None,
        out: Self | None = None,
        keepdims: bool = False,
    ) -> Self:
        """Returns the smallest elements over modes; arguments are those of `sum`."""
        return self._reduced("min", axis, None, out, keepdims)

    def mean(
        self,
        axis: IntOrInts | None = None,
        dtype: npt.DTypeLike | None = None,
        out: Self | None = None,
        keepdims: bool = False,
    ) -> Self:
        """Averages over modes; arguments are those of `sum`, but integers are averaged
        in float64.
        """
        if dtype is None and self.dtype.kind in "iub":
            dtype = np.float64
        elif dtype is not None and dtypes.wire_dtype(dtype).kind in "iub":
            raise Unimplemented(
                f"a mean in {np.dtype(dtype)} is not computed on the server, wanted a "
                "floating-point dtype",
                reason="TYPES_NOT_SUPPORTED",
            )
        axes = self._axes(axis)
        count = math.prod(self.shape[i] for i in axes)
        alpha = 1 / count if count else math.nan
        return self._reduced("add", axes, dtype, out, keepdims, alpha)

    def dot(self, other: Any) -> Any:
        """Computes what `numpy.dot` does."""
        other = other if isinstance(other, TensorHandle) else array_of(other)
        if self.ndim == 0 or other.ndim == 0:
            return self * other
        return tensordot(self, other, ([-1], [max(0, other.ndim - 2)]))

    def _axes(self, axis: IntOrInts | None) -> tuple[int, ...]:
        if axis is None:
            return tuple(range(self.ndim))
        return axes_of("axis", axis, self.ndim)

    def _reduced(
        self,
        operator: str,
        axis: IntOrInts | None,
        dtype: npt.DTypeLike | None,
        out: Self | None,
        keepdims: bool,
        alpha: float = 1,
    ) -> Self:
        axes = self._axes(axis)
        if operator in ("max", "min") and 0 in (self.shape[i] for i in axes):
            raise InvalidArgument(
                f"shape {self.shape} has nothing of which to take the {operator}imum "
                f"over modes {axes}, wanted one element or more",
                reason="REDUCTION_OF_NOTHING",
            )
        wanted = self.dtype
        if dtype is not None:
            wanted = dtypes.wire_dtype(dtype)
        elif operator in ("add", "mul") and out is not None:
            wanted = out.dtype
        elif operator in ("add", "mul") and self.dtype.kind in "iub":
            wanted = np.dtype(np.int64)
        source: Any = self
        if wanted != self.dtype:
            source = converted(self, wanted)
        kept = [i for i in range(self.ndim) if i not in axes]
        target = out
        if out is not None and keepdims:
            target = out.squeeze(axes)
        is_stored = target is not None and target.dtype != wanted
        result = self.session.reduce(
            source,
            range(self.ndim),
            kept,
            op=operator,
            alpha=alpha,
            out=None if is_stored else target,
        )
        if is_stored:
            stored(result, target)
        if out is not None:
            return out
        return result.expand_dims(axes) if keepdims else result


def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """Computes what `numpy.matmul` does; one of the operands, or `out`, is a
    RemoteTensor.
    """
    session, (x, y) = _session_and_operands(a, b, out=out)
    if not x.shape or not y.shape:
        raise InvalidArgument(
            "matmul has an operand without modes, wanted one or more; `*` multiplies by "
            "numbers",
            reason="MODE_COUNT_MISMATCH",
        )
    _check_equal("matmul", x, -1, y, max(-2, -len(y.shape)))
    batch_count = max(0, len(x.shape) - 2, len(y.shape) - 2)
    row, summed, column, *batch = list(letters(3 + batch_count))
    rows = [row] if len(x.shape) > 1 else []
    columns = [column] if len(y.shape) > 1 else []
    left = [*batch[batch_count - max(0, len(x.shape) - 2) :], *rows, summed]
    right = [*batch[batch_count - max(0, len(y.shape) - 2) :], summed, *columns]
    result = _einsum(session, x, left, y, right, [*batch, *rows, *columns])
    return result if out is None else stored(result, out)


def mapped(a: Any, operator: Callable[[Any], Any], out: Any = None) -> Any:
    """Computes `operator(a)`; `a` or `out` is a RemoteTensor."""
    a = a if isinstance(a, TensorHandle) else out.session.upload(a)
    result = operator(a)
    return result if out is None else stored(result, out)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Computes what `numpy.tensordot` does; one of the operands is a RemoteTensor."""
    session, (x, y) = _session_and_operands(a, b)
    try:
        given_x, given_y = axes
    except TypeError:
        given_x = list(range(-axes, 0))
        given_y = list(range(axes))
    axes_x = axes_of("axes of a", given_x, len(x.shape))
    axes_y = axes_of("axes of b", given_y, len(y.shape))
    if len(axes_x) != len(axes_y):
        raise InvalidArgument(
            f"axes names {len(axes_x)} modes of a but {len(axes_y)} of b, wanted as many",
            reason="MODE_COUNT_MISMATCH",
        )
    labels = letters(len(x.shape) + len(y.shape))
    left, right = list(labels[: len(x.shape)]), list(labels[len(x.shape) :])
    for i, j in zip(axes_x, axes_y):
        _check_equal("tensordot", x, i, y, j)
        right[j] = left[i]
    result = [label for i, label in enumerate(left) if i not in axes_x]
    result += [label for j, label in enumerate(right) if j not in axes_y]
    return _einsum(session, x, left, y, right, result)


def session_of(*operands: Any) -> TensorSession[Any, Any] | None:
    """Returns the session of the first operand that is on a server; None without."""
    for operand in operands:
        if isinstance(operand, Arithmetic):
            return operand.session
    return None


def _session_and_operands(
    *operands: Any, out: Any = None
) -> tuple[TensorSession[Any, Any], list[Any]]:
    session = session_of(*operands, out)
    assert session is not None
    return session, [
        each if isinstance(each, TensorHandle) else array_of(each) for each in operands
    ]


def _einsum(
    session: TensorSession[Any, Any],
    x: Any,
    left: list[str],
    y: Any,
    right: list[str],
    d: list[str],
) -> Any:
    subscripts = f"{''.join(left)},{''.join(right)}->{''.join(d)}"
    return session.einsum(subscripts, x, y)


def _check_equal(function: str, x: Any, i: int, y: Any, j: int) -> None:
    """Refuses what einsum would stretch."""
    if x.shape[i] != y.shape[j]:
        raise InvalidArgument(
            f"{function} sums mode {i} of {x.shape} with mode {j} of {y.shape}, wanted "
            "equal extents",
            reason="MODE_EXTENT_MISMATCH",
        )


def _is_operand(value: Any) -> bool:
    return isinstance(
        value, (TensorHandle, np.ndarray, np.generic, numbers.Number, list, tuple)
    ) or hasattr(value, "__dlpack__")


def _compared(other: Any, operator: str) -> Any:
    """Refuses to compare elements; everything else is left to Python."""
    if not _is_operand(other):
        return NotImplemented
    raise TypeError(
        f"elements of tensors are not compared on the server, so that `{operator}` has "
        "no meaning: numpy.equal, less and so on compare here, and `is` tells whether "
        "two names are one tensor"
    )


def binary(a: Any, b: Any, operator: str, out: Any = None) -> Any:
    """Computes `a + b` and so on, where one of them, or `out`, is a RemoteTensor.

    Args:
        a, b: Tensors, arrays and numbers.
        operator: "add", "sub", "mul" or "div".
        out: A RemoteTensor that receives the result, perhaps `a`.

    Returns:
        NotImplemented when an operand is something else.
    """
    if not _is_operand(a) or not _is_operand(b):
        return NotImplemented
    session = session_of(a, b, out)
    assert session is not None
    if session_of(a, b) is None:
        a = session.upload(a)
    dtype = _promoted(a, b, operator)
    if operator == "sub" and dtype == np.bool_:
        raise TypeError("bools have no difference")
    a, b = _as_known(a, dtype), _as_known(b, dtype)
    shape = _broadcast_shape(a, b)
    if out is not None:
        check_fits(out, shape, dtype)
        if dtype != out.dtype:
            is_narrower = not is_permuted(dtype, out.dtype)
            if not is_narrower or out.dtype.kind not in "iu":
                return stored(binary(a, b, operator), out)
            dtype = out.dtype  # Integers wrap, whether sooner or later.
            a, b = _as_known(a, dtype), _as_known(b, dtype)
    elif operator in ("mul", "div"):
        if not a.shape and isinstance(a, np.ndarray):
            op = "rcp" if operator == "div" else None
            modes = range(b.ndim)
            return session.permute(
                _of_dtype(b, dtype), modes, modes, alpha=a.item(), op_a=op
            )
        if not b.shape and isinstance(b, np.ndarray):
            modes = range(a.ndim)
            factor = b.item() if operator == "mul" else _reciprocal(b)
            return session.permute(_of_dtype(a, dtype), modes, modes, alpha=factor)
    x, modes_x = _aligned(a, dtype, shape)
    y, modes_y = _aligned(b, dtype, shape)
    try:
        return session.elementwise(
            x,
            modes_x,
            y,
            modes_y,
            range(len(shape)),
            op="mul" if operator in ("mul", "div") else "add",
            gamma=-1 if operator == "sub" else 1,
            op_c="rcp" if operator == "div" else None,
            out=out,
        )
    except InvalidArgument as error:
        if out is None or error.reason != "OUTPUT_OVERLAPS_INPUT":
            raise
    return stored(binary(a, b, operator), out)


def _as_known(value: Any, dtype: np.dtype) -> Any:
    """Returns a tensor as it is, and everything else as an array of `dtype`."""
    if isinstance(value, TensorHandle):
        return value
    if isinstance(value, numbers.Number) and not isinstance(value, np.generic):
        return np.asarray(value, dtype)  # Raises if an integer does not fit.
    return array_of(value).astype(dtype, copy=False)


def _broadcast_shape(a: Any, b: Any) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise InvalidArgument(
            f"shapes {a.shape} and {b.shape} do not broadcast, wanted equal extents or "
            "1, counted from the last mode",
            reason="MODE_EXTENT_MISMATCH",
        ) from None


def _reciprocal(value: np.ndarray) -> Any:
    """What to multiply by for dividing by a number."""
    if value == 0 and value.dtype.kind == "c":
        return np.inf
    with np.errstate(divide="ignore"):
        return np.reciprocal(value.astype(np.result_type(value, np.float64)))


def _promoted(a: Any, b: Any, operator: str) -> np.dtype:
    """Returns the dtype in which NumPy computes."""
    if isinstance(b, numbers.Number) and not isinstance(b, np.generic):
        dtype = _with_number(a.dtype, b)
    elif isinstance(a, numbers.Number) and not isinstance(a, np.generic):
        dtype = _with_number(b.dtype, a)
    else:
        dtype = np.result_type(_dtype_of(a), _dtype_of(b))
    if operator == "div" and dtype.kind in "iub":
        dtype = np.dtype(np.float64)
    return dtypes.wire_dtype(dtype)


def _dtype_of(value: Any) -> np.dtype:
    return value.dtype if hasattr(value, "shape") else np.asarray(value).dtype


def _with_number(dtype: np.dtype, number: Any) -> np.dtype:
    """The dtype of a tensor's elements together with one of Python's numbers."""
    if isinstance(number, bool):
        return dtype
    if isinstance(number, numbers.Integral):
        return np.dtype(np.int64) if dtype == np.bool_ else dtype
    if isinstance(number, numbers.Real):
        return np.dtype(np.float64) if dtype.kind in "iub" else dtype
    if dtype.kind == "c":
        return dtype
    is_double = dtype.kind in "iub" or dtype == np.float64
    return np.dtype(np.complex128 if is_double else np.complex64)


def _aligned(
    value: Any, dtype: np.dtype, shape: tuple[int, ...]
) -> tuple[Any, list[int]]:
    """Returns an operand of a dtype and its modes, those that it does not repeat."""
    first = len(shape) - len(value.shape)
    kept = [i for i, extent in enumerate(value.shape) if extent == shape[first + i]]
    if len(kept) < len(value.shape):
        dropped = tuple(i for i in range(len(value.shape)) if i not in kept)
        value = value.squeeze(dropped)
    return _of_dtype(value, dtype), [first + i for i in kept]


def _of_dtype(tensor: Any, dtype: np.dtype) -> Any:
    return tensor if tensor.dtype == dtype else converted(tensor, dtype)


def _mapped(tensor: Tensor, operator: str | None) -> Tensor:
    modes = range(tensor.ndim)
    result: Tensor = tensor.session.permute(tensor, modes, modes, op_a=operator)
    return result

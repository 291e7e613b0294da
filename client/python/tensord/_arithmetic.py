"""Arithmetic with tensors on the server, as NumPy writes it."""

from __future__ import annotations

import abc
import math
import operator as python
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arrays import array_of
from tensord._blocking_link import BlockingLink
from tensord._conversions import check_output, converted, refuse_lists, stored
from tensord._elementwise import binary, is_operand, real_dtype, session_of, unary
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
    dtype where they can, tensors are converted on the server. What is computed in place,
    `t += x`, is rounded to the tensor's dtype within its kind.

    `t == x`, `t < x` and so on are tensors of bools, also `t == t`; `t == None` is False,
    like any `==` with what is no operand. Tensors are hashed as objects, and are told
    apart by `is`. `x in tensors` and weak references compare, so that they want tensors
    of one element, as `bool(t)` does.

    `bool(t)`, `int(t)`, `float(t)`, `complex(t)` download the only element; `range(t)` and
    `x[t]` that of an integer without modes.

    All of them raise:
        InvalidArgument: Shapes do not fit together (`MODE_EXTENT_MISMATCH`).
        OverflowError: One of Python's integers is beyond the dtype.
        TypeError: What is computed in place is of another kind, or complex numbers are
            to be ordered.
        ValueError: An integer is raised to a negative integer. Of tensors of exponents,
            the server computes the reciprocal without its fraction instead.
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
        return matmul(self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self) if is_operand(other) else NotImplemented

    def __eq__(self, other: object) -> Any:
        return binary(self, other, "equal")

    def __ne__(self, other: object) -> Any:
        return binary(self, other, "not_equal")

    def __lt__(self, other: Any) -> Any:
        return binary(self, other, "less")

    def __le__(self, other: Any) -> Any:
        return binary(self, other, "less_equal")

    def __gt__(self, other: Any) -> Any:
        return binary(self, other, "greater")

    def __ge__(self, other: Any) -> Any:
        return binary(self, other, "greater_equal")

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __format__(self, spec: str) -> str:
        """Formats the only element; without a specification it says what this is."""
        return super().__format__(spec) if self.shape or not spec else format(self.item(), spec)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.shape:
            raise TypeError(
                f"a tensor of {self.dtype} and shape {self.shape} is no index, wanted an "
                "integer without modes"
            )
        return python.index(self.item())

    @abc.abstractmethod
    def item(self) -> Any:
        """Downloads the only element."""

    def __copy__(self) -> Self:
        """Copies it on the server, as NumPy's arrays are copied."""
        return unary(self, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same."""
        return unary(self, None)

    def __invert__(self) -> Self:
        """Computes what is not so; of bools alone."""
        if self.dtype != np.bool_:
            raise TypeError(f"bits of {self.dtype} are not computed on the server")
        inverse: Self = binary(self, False, "equal")
        return inverse

    def __and__(self, other: Any) -> Any:
        return _of_bools(self, other, "mul")

    def __or__(self, other: Any) -> Any:
        return _of_bools(self, other, "add")

    def __xor__(self, other: Any) -> Any:
        return _of_bools(self, other, "not_equal")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __pos__(self) -> Self:
        if self.dtype == np.bool_:
            raise TypeError("bools have no sign")
        return unary(self, None)

    def __neg__(self) -> Self:
        if self.dtype == np.bool_:
            raise TypeError("bools have no negative")
        return unary(self, "neg")

    def __abs__(self) -> Self:
        result: Self = absolute(self)
        return result

    def __pow__(self, exponent: Any) -> Any:
        return power(self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return power(base, self)

    def __ipow__(self, exponent: Any) -> Any:
        return power(self, exponent, self)

    @property
    def mT(self) -> Self:
        """A view with the last two modes in the other order."""
        return self.swapaxes(-2, -1)

    @property
    def real(self) -> Self:
        """The real parts; a new tensor, unless all there is are real numbers."""
        if self.dtype.kind != "c":
            return self
        return unary(self, "real", real_dtype(self.dtype))

    @property
    def imag(self) -> Self:
        """The imaginary parts, in a new tensor; 0 of real numbers."""
        return unary(self, "imag", real_dtype(self.dtype))

    def astype(
        self, dtype: npt.DTypeLike, *, casting: str = "unsafe", copy: bool = True
    ) -> Self:
        """Computes the same numbers in another dtype, as NumPy's `astype` does.

        Floating-point numbers lose their fraction on the way to integers, and stay within
        their range, NaN becoming 0; integers wrap; complex ones lose their imaginary part;
        bools say what is not 0.

        Args:
            dtype: Which.
            casting: What is allowed, as for `numpy.can_cast`.
            copy: False returns the tensor itself if it is of this dtype.

        Raises:
            TypeError: `casting` does not allow it.
        """
        wanted = dtypes.wire_dtype(dtype)
        if not dtypes.can_cast(self.dtype, wanted, casting):
            raise TypeError(
                f"a tensor of {self.dtype} does not become one of {wanted} by casting "
                f"{casting!r}"
            )
        if wanted == self.dtype and not copy:
            return self
        return converted(self, wanted)

    def conj(self) -> Self:
        """Computes the complex conjugate."""
        return unary(self, "conj")

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

    def all(self, axis: IntOrInts | None = None, keepdims: bool = False) -> Self:
        """Says whether all elements over modes are not 0; arguments are those of `sum`."""
        return self.astype(np.bool_, copy=False)._reduced(
            "mul", axis, np.bool_, None, keepdims
        )

    def any(self, axis: IntOrInts | None = None, keepdims: bool = False) -> Self:
        """Says whether elements over modes are not 0; arguments are those of `sum`."""
        return self.astype(np.bool_, copy=False)._reduced(
            "add", axis, np.bool_, None, keepdims
        )

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Computes what is within bounds, which may be None."""
        result: Any = self
        if min is not None:
            result = binary(result, min, "max")
        if max is not None:
            result = binary(result, max, "min")
        return +self if result is self else result

    def dot(self, other: Any) -> Any:
        """Computes what `numpy.dot` does."""
        refuse_lists(other)
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
        if out is not None:
            check_output(out)
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
        if wanted == np.bool_:
            operator = {"max": "add", "min": "mul"}.get(operator, operator)
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


def absolute(a: Any) -> Any:
    """Computes the absolute values, which are real."""
    if a.dtype.kind in "ub":
        return unary(a, None)
    return unary(a, "abs", real_dtype(a.dtype))


def power(a: Any, exponent: Any, out: Any = None) -> Any:
    """Computes what `numpy.power` does; one of the operands is a RemoteTensor."""
    if not is_operand(a) or not is_operand(exponent):
        return NotImplemented
    is_number = type(exponent) in (int, float)  # Not NumPy's, which have a dtype.
    if isinstance(a, TensorHandle) and is_number and out is None:
        if exponent == 2 and (a.dtype.kind != "b" and isinstance(exponent, int)):
            return binary(a, a, "mul")
        if exponent == 0.5 and a.dtype in _REAL_FLOATS:
            return unary(a, "sqrt")
    return binary(a, exponent, "pow", out)


def _of_bools(a: Any, b: Any, operator: str) -> Any:
    """Computes `a & b` and so on.

    Raises:
        TypeError: They are no bools.
    """
    if not is_operand(b):
        return NotImplemented
    refuse_lists(b)
    dtype = b.dtype if hasattr(b, "dtype") else np.asarray(b).dtype
    if a.dtype != np.bool_ or dtype != np.bool_:
        raise TypeError(
            f"bits of {a.dtype} and {dtype} are not computed on the server, wanted bools"
        )
    return binary(a, b, operator)


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


def _session_and_operands(
    *operands: Any, out: Any = None
) -> tuple[TensorSession[Any, Any], list[Any]]:
    refuse_lists(*operands)
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

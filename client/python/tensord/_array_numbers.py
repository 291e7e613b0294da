"""Functions of `tensord.array` that compute element by element."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _arithmetic as arithmetic
from tensord import _dtypes as dtypes
from tensord import _elementwise as elementwise
from tensord._array_session import refuse_other_libraries, tensor_of
from tensord._conversions import converted, stored
from tensord._elementwise import is_complex, session_of, unary

# How far a logarithm may be from a whole number that it is but for roundings.
_WHOLE_WITHIN = 0.01


def _binary(name: str, operator: str) -> Callable[..., Any]:
    def function(x1: Any, x2: Any, /, out: Any = None) -> Any:
        if session_of(x1, x2, out) is None:
            x1 = tensor_of(x1)
        return _answered(elementwise.binary(x1, x2, operator, out), name, x1, x2)

    return _named(function, name)


def _answered(result: Any, name: str, *operands: Any) -> Any:
    if result is NotImplemented:
        kinds = " and ".join(type(each).__name__ for each in operands)
        raise TypeError(
            f"{name} has operands of type {kinds}, wanted tensors or numbers"
        )
    return result


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Computes what `numpy.{name}` does, on the server."
    return function


@functools.cache
def _result_dtype(name: str, dtype: np.dtype) -> np.dtype:
    """The dtype that NumPy's function of a name has of a dtype."""
    with np.errstate(all="ignore"):
        result: np.dtype = getattr(np, name)(np.ones(1, dtype)).dtype
    return dtypes.wire_dtype(result)


def _unary(name: str, operator: str) -> Callable[..., Any]:
    """A function that is one operator of the server."""

    def function(x: Any, /, out: Any = None) -> Any:
        x = tensor_of(x, out)
        dtype = _result_dtype(name, x.dtype)
        if dtype.kind in "iub":  # Roundings of integers.
            return _put(unary(x, None), out)
        if x.dtype != dtype:
            x = converted(x, dtype)
        return _put(unary(x, operator), out)

    return _named(function, name)


def _put(result: Any, out: Any) -> Any:
    return result if out is None else stored(result, out)


add = _binary("add", "add")
subtract = _binary("subtract", "sub")
multiply = _binary("multiply", "mul")
divide = true_divide = _binary("divide", "div")
maximum = _binary("maximum", "max")
minimum = _binary("minimum", "min")
equal = _binary("equal", "equal")
not_equal = _binary("not_equal", "not_equal")
less = _binary("less", "less")
less_equal = _binary("less_equal", "less_equal")
greater = _binary("greater", "greater")
greater_equal = _binary("greater_equal", "greater_equal")

sqrt = _unary("sqrt", "sqrt")
exp = _unary("exp", "exp")
log = _unary("log", "log")
sin = _unary("sin", "sin")
cos = _unary("cos", "cos")
tan = _unary("tan", "tan")
sinh = _unary("sinh", "sinh")
cosh = _unary("cosh", "cosh")
tanh = _unary("tanh", "tanh")
asin = arcsin = _unary("arcsin", "asin")
acos = arccos = _unary("arccos", "acos")
atan = arctan = _unary("arctan", "atan")
asinh = arcsinh = _unary("arcsinh", "asinh")
acosh = arccosh = _unary("arccosh", "acosh")
atanh = arctanh = _unary("arctanh", "atanh")
ceil = _unary("ceil", "ceil")
floor = _unary("floor", "floor")


def trunc(x: Any, /, out: Any = None) -> Any:
    """Rounds towards zero."""
    x = tensor_of(x, out)
    return _put(where(less(x, 0), ceil(x), floor(x)), out)


# Powers of ten that are float64.
_MOST_DIGITS = 308


def rint(x: Any, /, out: Any = None) -> Any:
    """Rounds to the nearest whole number, halves to even ones; ints become floats."""
    x = tensor_of(x, out)
    if is_complex(x.dtype):
        raise TypeError(f"numbers of {x.dtype} are not rounded, wanted real ones")
    if x.dtype.kind in "iub":
        return _put(converted(x, np.rint(np.empty(0, x.dtype)).dtype), out)
    below = floor(x)
    far = x - below
    half = floor(below * 0.5)
    goes_up = greater(far, 0.5) | (equal(far, 0.5) & not_equal(half * 2, below))
    # Infinities and NaN have no distance.
    result = where(goes_up, below + 1, below)
    return _put(where(equal(result, 0), x * 0, result), out)  # 0 has a sign.


def round(x: Any, /, decimals: int = 0, out: Any = None) -> Any:
    """Rounds to so many digits after the point, as `numpy.round` does."""
    x = tensor_of(x, out)
    if x.dtype.kind == "b" and decimals == 0:
        return rint(x, out)
    if x.dtype.kind in "iu":
        if decimals >= 0:
            return _put(unary(x, None), out)
        wide = round(converted(x, np.dtype(np.float64)), decimals)
        return _put(converted(wide, x.dtype), out)
    if decimals == 0:
        return rint(x, out)
    digits = builtins.abs(decimals)
    scale = math.inf if digits > _MOST_DIGITS else 10.0**digits
    result = rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale
    return _put(result, out)


around = round


def log2(x: Any, /, out: Any = None) -> Any:
    """Computes logarithms to the base of 2."""
    return _put(_log(x, 2), out)


def log10(x: Any, /, out: Any = None) -> Any:
    """Computes logarithms to the base of 10."""
    return _put(_log(x, 10), out)


def _log(x: Any, base: int) -> Any:
    """Logarithms, which are exact where they are whole numbers."""
    x = tensor_of(x)
    exponent = multiply(log(x), 1 / math.log(base))
    if is_complex(x.dtype):
        return exponent
    whole = floor(exponent + 0.5)
    is_near = less(abs(exponent - whole), _WHOLE_WITHIN)
    is_exact = equal(power(float(base), whole), x) & is_near
    return where(is_exact, whole, exponent)


def power(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Computes powers, as `**` does."""
    if session_of(x1, x2, out) is None:
        x1 = tensor_of(x1)
    return _answered(arithmetic.power(x1, x2, out), "power", x1, x2)


pow = power


def square(x: Any, /, out: Any = None) -> Any:
    """Computes squares."""
    x = tensor_of(x, out)
    if x.dtype == np.bool_:
        x = converted(x, np.dtype(np.int8))
    return multiply(x, x, out=out)


def reciprocal(x: Any, /, out: Any = None) -> Any:
    """Computes reciprocals, of floating-point and complex numbers."""
    x = tensor_of(x, out)
    if x.dtype.kind in "iub":
        raise TypeError(
            f"reciprocals of {x.dtype} are not computed, wanted no integers"
        )
    return divide(1, x, out=out)


def negative(x: Any, /, out: Any = None) -> Any:
    """Computes `-x`."""
    return _put(-tensor_of(x, out), out)


def positive(x: Any, /, out: Any = None) -> Any:
    """Computes `+x`, a copy."""
    return _put(+tensor_of(x, out), out)


def conj(x: Any, /, out: Any = None) -> Any:
    """Computes complex conjugates."""
    return _put(tensor_of(x, out).conj(), out)


conjugate = conj


def abs(x: Any, /, out: Any = None) -> Any:
    """Computes absolute values, which are real."""
    return _put(arithmetic.absolute(tensor_of(x, out)), out)


absolute = abs


def real(x: Any, /) -> Any:
    """Returns real parts."""
    return tensor_of(x).real


def imag(x: Any, /) -> Any:
    """Computes imaginary parts."""
    return tensor_of(x).imag


def sign(x: Any, /, out: Any = None) -> Any:
    """Computes -1, 0 or 1; of complex numbers those of their direction."""
    x = tensor_of(x, out)
    if is_complex(x.dtype):
        size = abs(x)
        return _put(where(equal(size, 0), x, x / where(equal(size, 0), 1, size)), out)
    if x.dtype == np.bool_:
        raise TypeError("bools have no sign")
    signs = converted(x > 0, x.dtype) - converted(x < 0, x.dtype)
    return _put(signs if x.dtype.kind in "iu" else where(x != x, x, signs), out)


def clip(
    x: Any, min: Any = None, max: Any = None, /, out: Any = None, **named: Any
) -> Any:
    """Computes what is within bounds; None for no bound.

    Args:
        x: The numbers.
        min, max: The bounds, also as `a_min=` and `a_max=`.
        out: Tensor that receives the result.
        **named: The bounds by name.
    """
    for name in named:
        if name not in ("min", "max", "a_min", "a_max"):
            raise TypeError(f"clip has no argument {name!r}, wanted min= and max=")
    low = named.get("min", named.get("a_min", min))
    high = named.get("max", named.get("a_max", max))
    return _put(tensor_of(x, low, high, out).clip(low, high), out)


def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Chooses elements of `x1` where a condition is true, and of `x2` elsewhere."""
    for each in condition, x1, x2:
        refuse_other_libraries(each)
    if session_of(condition, x1, x2) is None:
        condition = tensor_of(condition)
    return elementwise.where(condition, x1, x2)


def logical_not(x: Any, /, out: Any = None) -> Any:
    """Says which elements are 0."""
    return equal(tensor_of(x, out), 0, out=out)


def logical_and(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Says where both elements are not 0."""
    return multiply(*_truths(x1, x2, out), out=out)


def logical_or(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Says where one of the elements is not 0, or both are."""
    return add(*_truths(x1, x2, out), out=out)


def logical_xor(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Says where just one of the elements is not 0."""
    return not_equal(*_truths(x1, x2, out), out=out)


def bitwise_and(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Computes `x1 & x2`, of bools."""
    return _put(tensor_of(x1, x2, out) & x2, out)


def bitwise_or(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Computes `x1 | x2`, of bools."""
    return _put(tensor_of(x1, x2, out) | x2, out)


def bitwise_xor(x1: Any, x2: Any, /, out: Any = None) -> Any:
    """Computes `x1 ^ x2`, of bools."""
    return _put(tensor_of(x1, x2, out) ^ x2, out)


def invert(x: Any, /, out: Any = None) -> Any:
    """Computes `~x`, of bools."""
    return _put(~tensor_of(x, out), out)


bitwise_invert = invert


def _truths(x1: Any, x2: Any, out: Any) -> tuple[Any, Any]:
    wanted = np.dtype(np.bool_)
    known = [tensor_of(x1, x2, out), tensor_of(x2, x1, out)]
    x1, x2 = (
        each if each.dtype == wanted else converted(each, wanted) for each in known
    )
    return x1, x2


def isnan(x: Any, /, out: Any = None) -> Any:
    """Says which elements are no numbers."""
    x = tensor_of(x, out)
    return not_equal(x, x, out=out)


def isfinite(x: Any, /, out: Any = None) -> Any:
    """Says which elements are neither infinite nor no numbers."""
    x = tensor_of(x, out)
    if is_complex(x.dtype):
        return logical_and(isfinite(x.real), isfinite(x.imag), out=out)
    if x.dtype.kind in "iub":
        return equal(x, x, out=out)
    return less(abs(x), math.inf, out=out)


def isinf(x: Any, /, out: Any = None) -> Any:
    """Says which elements are infinite."""
    x = tensor_of(x, out)
    if is_complex(x.dtype):
        return logical_or(isinf(x.real), isinf(x.imag), out=out)
    if x.dtype.kind in "iub":
        return not_equal(x, x, out=out)
    return equal(abs(x), math.inf, out=out)


def isclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Says which elements are close to each other, as `numpy.isclose` does."""
    a, b = tensor_of(a, b), tensor_of(b, a)
    if b.dtype.kind in "iub":
        b = converted(b, np.dtype(np.float64))
    near = less_equal(abs(a - b), atol + rtol * abs(b)) & isfinite(b)
    near = near | equal(a, b)
    return near | (isnan(a) & isnan(b)) if equal_nan else near


def allclose(
    a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """Downloads whether all elements are close to each other."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all())


def array_equal(a1: Any, a2: Any) -> bool:
    """Downloads whether shapes and elements are equal."""
    a1, a2 = tensor_of(a1, a2), tensor_of(a2, a1)
    return a1.shape == a2.shape and bool(equal(a1, a2).all())


def astype(
    x: Any, dtype: npt.DTypeLike, /, *, copy: bool = True, device: Any = None
) -> Any:
    """Computes the same numbers in another dtype, see `RemoteTensor.astype`."""
    x = tensor_of(x)
    return x.astype(dtype, copy=copy)


__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "allclose",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "around",
    "array_equal",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "floor",
    "greater",
    "greater_equal",
    "imag",
    "invert",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "positive",
    "pow",
    "power",
    "real",
    "reciprocal",
    "rint",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "where",
]

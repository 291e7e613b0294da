"""Most of the Python array API, and NumPy's names, on tensors that stay on the server.

    import tensord.array as xp

    xp.use("localhost:8470")                  # or a session; or $TENSORD_ADDRESS
    a = xp.asarray(numpy.random.rand(50, 60))
    b = xp.exp(a) @ a.T
    if xp.linalg.norm(b) > 1:                 # downloads one number
        print(xp.downloads())

`use` with an address opens a recorded session: functions return at once, and their
operations go out when a value is wanted (`bool`, `int`, `float`, `item`, `numpy`,
`allclose`), or when there are many. Those of which nobody has the results any more are
not computed, and equal ones once. What an operation fails with names the line that
called it. `flush` waits for all.

Functions are in the session of their operands; arrays and numbers beside tensors go
there. A name that is not here raises AttributeError with the nearest one. Nothing is
downloaded but what is asked for; `downloads` counts it.

Not all of the array API 2024.12 is here, so there is no `__array_api_version__`.
There are no atan2, searchsorted, expm1, log1p, floor_divide, remainder,
hypot, copysign, signbit, nextafter, logaddexp, shifts, meshgrid, nonzero,
unique_*, and no uint16 to uint64; `linalg` has no cross, det and
slogdet. `random` has numbers that are drawn here and sent.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import Any

from numpy import (
    bool_ as bool,
)
from numpy import (
    can_cast,
    complex64,
    complex128,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    newaxis,
    result_type,
    uint8,
)

from tensord._arguments import check_type
from tensord._array_autoray import register
from tensord._array_dtypes import isdtype
from tensord._array_dtypes import namespace_info as __array_namespace_info__
from tensord._array_creation import (
    arange,
    array,
    asanyarray,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    identity,
    indices,
    linspace,
    ones,
    ones_like,
    to_numpy,
    zeros,
    zeros_like,
)
from tensord._array_indices import (
    ravel_multi_index,
    take,
    take_along_axis,
    unravel_index,
)
from tensord._array_layout import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_to,
    concat,
    concatenate,
    diag,
    diagonal,
    dstack,
    expand_dims,
    flip,
    hstack,
    kron,
    matrix_transpose,
    moveaxis,
    pad,
    permute_dims,
    ravel,
    repeat,
    reshape,
    roll,
    split,
    squeeze,
    stack,
    swapaxes,
    tile,
    trace,
    transpose,
    tril,
    triu,
    unstack,
    vstack,
)
from tensord._array_nan import (
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from tensord._array_numbers import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    allclose,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    around,
    array_equal,
    asin,
    asinh,
    astype,
    atan,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_or,
    bitwise_xor,
    ceil,
    clip,
    conj,
    conjugate,
    cos,
    cosh,
    divide,
    equal,
    exp,
    floor,
    greater,
    greater_equal,
    imag,
    invert,
    isclose,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log10,
    log2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    positive,
    pow,
    power,
    real,
    reciprocal,
    rint,
    round,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
    where,
)
from tensord._array_products import (
    dot,
    einsum,
    einsum_path,
    inner,
    matmul,
    outer,
    tensordot,
    vdot,
    vecdot,
)
from tensord._array_quantiles import (
    median,
    percentile,
    quantile,
)
from tensord._array_scans import (
    argmax,
    argmin,
    argsort,
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    sort,
)
from tensord._array_statistics import (
    all,
    amax,
    amin,
    any,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from tensord._array_names import missing
from tensord._array_session import CURRENT, DOWNLOADS
from tensord._connect import connect
from tensord._dtypes import bfloat16
from tensord._session import Session
from tensord.array import linalg, random

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "around",
    "array",
    "array_equal",
    "asanyarray",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "complex128",
    "complex64",
    "concat",
    "concatenate",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diag",
    "diagonal",
    "diff",
    "divide",
    "dot",
    "downloads",
    "dstack",
    "e",
    "einsum",
    "einsum_path",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "eye",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "flush",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hstack",
    "identity",
    "iinfo",
    "imag",
    "indices",
    "inf",
    "inner",
    "int16",
    "int32",
    "int64",
    "int8",
    "invert",
    "isclose",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "kron",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log10",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "median",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "negative",
    "newaxis",
    "not_equal",
    "ones",
    "ones_like",
    "outer",
    "pad",
    "percentile",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "power",
    "prod",
    "quantile",
    "random",
    "ravel",
    "ravel_multi_index",
    "real",
    "reciprocal",
    "repeat",
    "reshape",
    "result_type",
    "rint",
    "roll",
    "round",
    "sign",
    "sin",
    "sinh",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "to_numpy",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "uint8",
    "unravel_index",
    "unstack",
    "use",
    "var",
    "vdot",
    "vecdot",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
]


def use(session: Session | str | None) -> Session | None:
    """Says in which session new tensors are made.

    Args:
        session: A session, perhaps a deferred one; or the address of a server, with which
            a recorded one is opened; None for that of $TENSORD_ADDRESS, when it is needed.

    Returns:
        The session.

    Raises:
        TypeError: It is none of these, as a session of `tensord.aio` is not.
    """
    if isinstance(session, str):
        session = _opened(session)
    check_type(
        "session", session, (Session, type(None)), "a Session, an address or None"
    )
    CURRENT.session = session
    return session


def flush(timeout: float | None = None) -> None:
    """Waits until all that was called is done, in the current session.

    Args:
        timeout: Most seconds to wait.

    Raises:
        Error: The first that an operation failed with and nobody has met.
    """
    session = CURRENT.get()
    if hasattr(session, "wait"):
        session.wait(timeout)


def downloads() -> int:
    """Returns how many tensors' elements were asked for, in this process, so far."""
    return DOWNLOADS.total


def _opened(address: str) -> Session:
    return connect(address, recorded=True)


def __getattr__(name: str) -> Any:
    raise missing("tensord.array", name, __all__)


CURRENT.opener = _opened
register()

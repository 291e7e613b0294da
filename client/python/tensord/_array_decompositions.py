"""What quimb asks for: its names of decompositions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tensord._array_indices import take_along_axis
from tensord._array_linalg import eigh, svd
from tensord._array_numbers import sqrt
from tensord._array_scans import argsort
from tensord._array_session import tensor_of
from tensord._subscripts import letters
from tensord.errors import InvalidArgument

# quimb's numbers and names of what is returned: what the server absorbs, and which of the
# factors stay.
_FORMS: dict[Any, tuple[str | None, str]] = {
    None: (None, "usv"),
    2: (None, "s"),
    -12: ("both", "u"),
    12: ("both", "v"),
    -11: ("left", "v"),
    -10: ("left", "u"),
    -1: ("left", "uv"),
    0: ("both", "uv"),
    1: ("right", "uv"),
    10: ("right", "u"),
    11: ("right", "v"),
}
_FORM_NAMES = {
    "U,s,VH": None,
    "s": 2,
    "lsqrt": -12,
    "rsqrt": 12,
    "sqVH": 12,
    "VH": -11,
    "rorthog": -11,
    "Us": -10,
    "lfactor": -10,
    "Us,VH": -1,
    "left": -1,
    "Usq,sqVH": 0,
    "both": 0,
    "U,sVH": 1,
    "right": 1,
    "U": 10,
    "lorthog": 10,
    "sVH": 11,
    "rfactor": 11,
}
_CUTOFFS = {
    1: "cutoff",
    2: "relative_cutoff",
    3: "discarded_squares",
    4: "relative_discarded_squares",
}
_CUTOFF_NAMES = {"abs": 1, "rel": 2, "sum2": 3, "rsum2": 4, "sum1": 5, "rsum1": 6}
_RSUM2 = 4
_SUM1, _RSUM1 = 5, 6

Factors = tuple[Any, Any, Any]


def svd_truncated(
    x: Any,
    cutoff: float = -1.0,
    cutoff_mode: int | str = _RSUM2,
    max_bond: int = -1,
    absorb: int | str | None = 0,
    renorm: int = 0,
    info: dict[str, Any] | None = None,
) -> Factors:
    """Computes a truncated SVD in one call, as quimb's function of this name.

    What the server does not know, sums of values that are no squares, and the error in
    `info`, takes the singular values here: one download.

    Args:
        x: Matrices, in the last two modes.
        cutoff: What is cut off, if more than 0.
        cutoff_mode: How: 1 to 6, or "abs", "rel", "sum2", "rsum2", "sum1", "rsum1".
        max_bond: Most values that are kept; -1 for all.
        absorb: What becomes of the values, and what is returned, by quimb's numbers.
        renorm: The power of which the sum is kept; 0 for none.
        info: Receives "error" if it has that.

    Returns:
        The left factor, the values and the right one; None for what was not asked for.
    """
    absorbed, wanted = _form(absorb)
    mode = _CUTOFF_NAMES[cutoff_mode] if isinstance(cutoff_mode, str) else cutoff_mode
    has_error = info is not None and "error" in info
    by_sum = mode in (_SUM1, _RSUM1) and cutoff > 0
    if has_error or by_sum or renorm not in (0, 2):
        limits = _Limits(cutoff, mode, max_bond, renorm)
        return _by_values(svd(x), limits, (absorbed, wanted), info)
    options: dict[str, Any] = {"renormalize": renorm == 2}
    if max_bond > 0:
        options["rank"] = max_bond
    if cutoff > 0:
        options[_CUTOFFS[mode]] = cutoff
    return _by_server(x, absorbed, wanted, options)


def _by_server(
    x: Any, absorbed: str | None, wanted: str, options: dict[str, Any]
) -> Factors:
    """Returns what is wanted of an SVD that the server truncates."""
    if absorbed is None:
        u, s, v = svd(x, **options)
        return _selected(_kept(u, s, v, _extent(s, options)), wanted)
    u, v = x.session.factorize(
        _two_factors(x.ndim),
        x,
        method="svd",
        absorb=absorbed,
        **options,
    )
    return _selected(_kept(u, None, v, _extent(u, options)), wanted)


def svd_rand_truncated(
    x: Any,
    max_bond: int | None,
    absorb: int | str | None = 0,
    oversample: int = 10,
    num_iterations: int = 2,
    seed: Any = None,
    **options: Any,
) -> Factors:
    """Computes an SVD by a random sample in one call, as quimb's function of this name.

    Args:
        x: Matrices, in the last two modes.
        max_bond: Most values that are kept; None or -1 for all, without a sample.
        absorb: As `svd_truncated` takes it.
        oversample, num_iterations: As `oversampling` and `power_iterations` of
            `Session.factorize`.
        seed: Of the random numbers: an integer, what `numpy.random.default_rng` takes, or
            a generator of `tensord.array.random`.
        **options: How quimb composes it, which says nothing here.

    Returns:
        What `svd_truncated` returns.
    """
    absorbed, wanted = _form(absorb)
    sampled: dict[str, Any] = {}
    if seed is not None and not isinstance(seed, (int, np.integer)):
        source = getattr(seed, "bit_generator", seed)
        seed = int(np.random.default_rng(source).integers(1 << 62))
    if max_bond is not None and max_bond > 0:
        sampled = {
            "rank": max_bond,
            "randomized": True,
            "oversampling": oversample,
            "power_iterations": num_iterations,
            "seed": seed,
        }
    return _by_server(x, absorbed, wanted, sampled)


def rsvd(x: Any, rank: int) -> Factors:
    """Computes an SVD by a random sample: u, s and v, as quimb asks for them."""
    return svd_rand_truncated(x, rank, absorb=None)


def eigh_truncated(
    x: Any,
    cutoff: float = -1.0,
    cutoff_mode: int | str = _RSUM2,
    max_bond: int = -1,
    absorb: int | str | None = 0,
    renorm: int = 0,
    positive: int = 0,
    shift: bool | float = False,
) -> Factors:
    """Computes truncated eigenvalues and vectors, as quimb's function of this name.

    A cutoff and `renorm` take the values here: one download.

    Args:
        x: Hermitian matrices, in the last two modes.
        cutoff, cutoff_mode, max_bond, absorb, renorm: As `svd_truncated` takes them.
        positive: Whether no value is negative, but for roundings.
        shift: What is added to the diagonal, relative to the trace; True for the
            distance of 1 to the next number.

    Returns:
        What `svd_truncated` returns; values of either sign, the largest ones first.
    """
    form = _form(absorb)
    mode = _CUTOFF_NAMES[cutoff_mode] if isinstance(cutoff_mode, str) else cutoff_mode
    x = tensor_of(x)
    part = float(np.finfo(x.dtype).eps) if shift is True else float(shift)
    if part:
        size = x.diagonal(0, -2, -1).sum(-1)[..., None, None]
        x = x + part * size * np.eye(x.shape[-1], dtype=x.dtype)
    values, vectors = eigh(x)
    if not positive:
        values, vectors = _by_magnitude(values, vectors)
    else:
        values, vectors = values[..., ::-1], vectors[..., ::-1]
        if form[0] == "both":
            values = values.clip(0)
    factors = vectors, values, vectors.conj().mT
    return _by_values(factors, _Limits(cutoff, mode, max_bond, renorm), form)


def _by_magnitude(values: Any, vectors: Any) -> tuple[Any, Any]:
    """Returns values and vectors in another order, the largest ones first."""
    order = argsort(abs(values), descending=True)
    values = take_along_axis(values, order)
    return values, take_along_axis(vectors, order[..., None, :], axis=-1)


def qr_stabilized(
    x: Any, absorb: int | str | None = 1, stabilized: bool = True, **options: Any
) -> Factors:
    """Computes QR or LQ factors in one call, as quimb's function of this name.

    Args:
        x: Matrices, in the last two modes.
        absorb: Which factor is triangular, and what is returned, by quimb's numbers.
        stabilized: Always so: the diagonal of the triangle is real and not negative.
        **options: None are known.

    Returns:
        The left factor, None, and the right one; None for what was not asked for.
    """
    if options:
        raise TypeError(f"qr_stabilized has no options {', '.join(options)} here")
    absorbed, wanted = _form(absorb)
    if absorbed not in ("left", "right"):
        raise InvalidArgument(
            f"absorb is {absorb!r}, wanted a form of QR or LQ", reason="ABSORB_UNKNOWN"
        )
    left, right = x.session.factorize(
        _two_factors(x.ndim),
        x,
        method="qr" if absorbed == "right" else "lq",
    )
    return _selected((left, None, right), wanted)


def _two_factors(mode_count: int) -> str:
    """Subscripts of matrices and their factors."""
    labels = letters(mode_count + 1)
    row, column, inner, batch = labels[0], labels[1], labels[2], labels[3:]
    return f"{batch}{row}{column}->{batch}{row}{inner},{batch}{inner}{column}"


def _form(absorb: int | str | None) -> tuple[str | None, str]:
    """What the server absorbs, and which of "usv" are returned."""
    number = _FORM_NAMES[absorb] if isinstance(absorb, str) else absorb
    return _FORMS[number]


def _selected(factors: Factors, wanted: str) -> Factors:
    u, s, v = (each if name in wanted else None for name, each in zip("usv", factors))
    return u, s, v


def _extent(result: Any, options: Mapping[str, Any]) -> int:
    """How many values the server has kept; waits where something is cut off."""
    if not options.keys() & set(_CUTOFFS.values()):
        return int(result.shape[-1])
    assert result.full_name  # It is known once the tensor is there.
    return int(result.report.kept_extent)


def _kept(u: Any, s: Any, v: Any, extent: int) -> Factors:
    """Returns the factors without what was cut off."""
    if extent >= u.shape[-1]:
        return u, s, v
    values = None if s is None else s[..., :extent]
    return u[..., :extent], values, v[..., :extent, :]


class _Limits(NamedTuple):
    """What is cut off, in the words of `svd_truncated`."""

    cutoff: float
    mode: int
    max_bond: int
    renorm: int


def _by_values(
    factors: Factors,
    limits: _Limits,
    form: tuple[str | None, str],
    info: dict[str, Any] | None = None,
) -> Factors:
    """As `svd_truncated`, by looking at the values, if they matter."""
    absorbed, wanted = form
    u, s, v = factors
    has_error = info is not None and "error" in info
    extent = s.shape[-1]
    values = None
    if limits.cutoff > 0 or limits.renorm > 0 or has_error:
        values = np.abs(s.numpy())
    if values is not None and limits.cutoff > 0:
        counts = _counts(values, limits.cutoff, limits.mode)
        extent = max(1, int(np.max(counts, initial=1)))
    if limits.max_bond > 0:
        extent = min(extent, limits.max_bond)
    if info is not None and values is not None and has_error:
        info["error"] = np.sqrt(np.sum(values[..., extent:] ** 2, axis=-1))
    u, s, v = _kept(u, s, v, extent)
    if values is not None and limits.renorm > 0 and extent < values.shape[-1]:
        powers = values**limits.renorm
        part = np.sum(powers[..., :extent], axis=-1, keepdims=True)
        whole = np.sum(powers, axis=-1, keepdims=True)
        s = s * (whole / part) ** (1 / limits.renorm)
    if absorbed == "both":
        s = sqrt(s)
    if absorbed in ("left", "both"):
        u = u * s[..., None, :]
    if absorbed in ("right", "both"):
        v = s[..., :, None] * v
    return _selected((u, s if absorbed is None else None, v), wanted)


def _counts(values: np.ndarray, cutoff: float, mode: int) -> Any:
    """How many values are kept of each matrix."""
    if mode in (1, 2):
        limit = cutoff if mode == 1 else cutoff * values[..., :1]
        return np.sum(values > limit, axis=-1)
    powers = values ** (1 if mode in (_SUM1, _RSUM1) else 2)
    limit = cutoff
    if mode in (_RSUM2, _RSUM1):
        limit = cutoff * np.sum(powers, axis=-1, keepdims=True)
    discarded = np.cumsum(powers[..., ::-1], axis=-1)[..., ::-1]
    return np.sum(discarded > limit, axis=-1)

"""Checks of what callers pass."""

from __future__ import annotations

import datetime
import math
import numbers
import operator
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tensord.errors import InvalidArgument

_ADDRESS = re.compile(
    r"unix:.+|(?:dns:///)?(?:\[[^][]+\]|[^][:/\s]+):(\d{1,5})", re.DOTALL
)
_LARGEST_PORT = 65535
_LONGEST_TIMEOUT_SECONDS = 1e9
_SHORTEST_TIMEOUT_SECONDS = 1e-3

Value = TypeVar("Value")


def check_type(
    argument: str, value: Any, types: type | tuple[type, ...], wanted: str
) -> None:
    """Refuses a value of another type than one of `types`.

    Raises:
        TypeError: It is; the message names `argument` and what is `wanted`.
    """
    if not isinstance(value, types):
        raise TypeError(
            f"{argument} is of type {type(value).__name__}, wanted {wanted}"
        )


def check_options(options: Iterable[str], known: Iterable[str]) -> None:
    """Refuses options by names that are not among those known.

    Raises:
        TypeError: There is one.
    """
    for name in options:
        if name not in known:
            raise TypeError(
                f"option {name!r} is unknown, wanted one of {', '.join(known)}"
            )


def look_up(kind: str, name: str, known: Mapping[str, Value], reason: str) -> Value:
    """Returns what a name stands for, in capital letters or not.

    Args:
        kind: What it names, for the message.
        name: As the caller gave it.
        known: What there is, by names in small letters.
        reason: Of the error.

    Raises:
        InvalidArgument: There is nothing of that name.
    """
    try:
        return known[name.lower()]
    except KeyError:
        raise InvalidArgument(
            f"{kind} {name!r} is unknown, wanted one of " + ", ".join(known),
            reason=reason,
        ) from None


def check_timeout(timeout: float | None) -> None:
    """Refuses what is no deadline.

    Args:
        timeout: Seconds; None for the default, `math.inf` for none.

    Raises:
        InvalidArgument: It is not positive.
        TypeError: It is no number.
    """
    if timeout is None:
        return
    check_type("timeout", timeout, numbers.Real, "seconds, or None for the default")
    if not timeout > 0:
        raise InvalidArgument(
            f"timeout is {timeout}, wanted more than 0 seconds, or None for the "
            "default",
            reason="TIMEOUT_NOT_POSITIVE",
        )


def timeout_seconds(timeout: float) -> float:
    """Returns a timeout as a float that can be added to a time.

    Args:
        timeout: What `check_timeout` lets pass, and not None.

    Returns:
        `math.inf` for decades, which gRPC would take for a time in the past.
    """
    return float(timeout) if timeout < _LONGEST_TIMEOUT_SECONDS else math.inf


def remaining_seconds(timeout: float | None, begun: float) -> float | None:
    """What is left of a timeout that began to run at `begun` on the monotonic clock."""
    if timeout is None:
        return None
    spent = time.monotonic() - begun
    return max(timeout_seconds(timeout) - spent, _SHORTEST_TIMEOUT_SECONDS)


def lease_value(lease: float | datetime.timedelta) -> datetime.timedelta:
    """Returns a lease as it travels.

    Raises:
        InvalidArgument: It is infinite or no number of seconds.
        TypeError: It is neither a number nor a timedelta.
    """
    if isinstance(lease, datetime.timedelta):
        return lease
    check_type("lease", lease, numbers.Real, "seconds, a timedelta or None")
    try:
        return datetime.timedelta(seconds=float(lease))
    except (OverflowError, ValueError):
        raise InvalidArgument(
            f"lease is {lease}, wanted seconds within the server's limits",
            reason="LEASE_OUT_OF_RANGE",
        ) from None


def extents_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Returns the extents of a shape.

    Raises:
        InvalidArgument: An extent is not an int64.
        TypeError: It is neither an integer nor a sequence of them.
    """
    extents = integers_of("shape", shape)
    for extent in extents:
        if not -(2**63) <= extent < 2**63:
            raise InvalidArgument(
                f"shape has extent {extent}, which is out of range, wanted an int64",
                reason="EXTENT_OUT_OF_RANGE",
            )
    return extents


def integers_of(argument: str, value: Any) -> tuple[int, ...]:
    """Returns one integer, or a sequence of them, as a tuple.

    Raises:
        TypeError: It is neither; the message names `argument`.
    """
    try:
        if hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0:
            return (operator.index(value),)
        return tuple(operator.index(each) for each in value)
    except TypeError:
        raise TypeError(
            f"{argument} is {value!r}, wanted an int or a sequence of ints"
        ) from None


def integer_of(argument: str, value: int) -> int:
    """Returns an integer.

    Raises:
        TypeError: It is none; the message names `argument`.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} is {value!r}, wanted an int") from None


def check_address(address: str) -> None:
    """Refuses what no server can be at.

    Raises:
        InvalidArgument: It is neither `HOST:PORT`, `dns:///HOST:PORT` nor `unix:PATH`.
        TypeError: It is no string.
    """
    check_type("address", address, str, "HOST:PORT, dns:///HOST:PORT or unix:PATH")
    match = _ADDRESS.fullmatch(address)
    if match is None or match[1] and not 1 <= int(match[1]) <= _LARGEST_PORT:
        raise InvalidArgument(
            f"address is {address!r}, wanted HOST:PORT, dns:///HOST:PORT or unix:PATH",
            reason="ADDRESS_MALFORMED",
        )


def factor_value(argument: str, factor: Any) -> complex:
    """Returns a factor as it travels.

    Args:
        argument: Its name, e.g. "alpha".
        factor: A number, or an array or tensor without modes.

    Raises:
        InvalidArgument: It is an integer that a double cannot hold exactly, or too
            large.
        TypeError: It is no number.
    """
    number = factor.item() if getattr(factor, "ndim", None) == 0 else factor
    if getattr(number, "ndim", 0) != 0:
        raise TypeError(f"{argument} has shape {number.shape}, wanted a number")
    if isinstance(number, (str, bytes)):  # complex("1") would be 1.
        raise TypeError(f"{argument} is {number!r}, wanted a number")
    if isinstance(number, (int, np.integer)):
        _check_exact(argument, int(number))
    try:
        return complex(number)
    except OverflowError:
        raise InvalidArgument(
            f"{argument} is too large, wanted a number that a double can hold",
            reason="FACTOR_NOT_REPRESENTABLE",
        ) from None
    except (TypeError, ValueError):
        raise TypeError(
            f"{argument} is of type {type(factor).__name__}, wanted a number"
        ) from None


def _check_exact(argument: str, number: int) -> None:
    """Refuses integers that would be rounded on their way."""
    try:
        exact = float(number) == number
    except OverflowError:
        exact = False
    if not exact:
        bits = number.bit_length()
        shown = str(number) if bits <= 64 else f"an integer of {bits} bits"
        raise InvalidArgument(
            f"{argument} is {shown}, wanted an integer that a double holds exactly, as "
            "all up to 2**53 are; a float says that rounding is meant",
            reason="FACTOR_NOT_REPRESENTABLE",
        )

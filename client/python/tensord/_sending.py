"""How operands that are here get to the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tensord._arrays import array_of
from tensord._handle import Handle, Held
from tensord._session_link import SessionLink
from tensord._specs import TensorSpec
from tensord.v1 import compute_pb2, program_pb2

Key = TypeVar("Key")


class Array(NamedTuple):
    """An array, and what it is like once it has been sent."""

    array: np.ndarray
    spec: TensorSpec


def sources(
    link: SessionLink, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
) -> Iterator[tuple[Key, compute_pb2.InlineTensor | Handle]]:
    """Yields messages with arrays, or temporary tensors, by their names.

    Args:
        link: Of the session that gets them.
        arrays: By whatever tells them apart.
        timeout: Deadline in seconds; None for the default.
    """
    packed = {}
    for name, array in arrays.items():
        known = array_of(array)
        adopted = link.memory.handle_of(known, timeout)
        if adopted is None:
            packed[name] = _packed(known)
        else:
            yield name, adopted
    for name, source in sent(link, packed, timeout):
        if isinstance(source, Handle):
            yield name, source
        else:
            message = packed[name].spec.inline_message()
            message.data = source
            yield name, message


def sent(
    link: SessionLink, arrays: Mapping[Key, Array], timeout: float | None
) -> Iterator[tuple[Key, bytes | Handle]]:
    """Yields the memory of arrays, or temporary tensors, by their names.

    Those in shared memory stay where they are. From small to large, others go inline as
    long as they fit in the message.
    """
    rest: dict[Key, Array] = {}
    for name, (array, spec) in arrays.items():
        in_place = spec.strides in (None, array.strides) and (
            spec.strides is not None or array.flags.c_contiguous
        )
        adopted = link.memory.handle_of(array, timeout) if in_place else None
        if adopted is None:
            rest[name] = Array(array, spec)
        else:
            yield name, adopted
    room = link.info.limits.max_inline_bytes
    for name, (array, spec) in sorted(
        rest.items(), key=lambda item: item[1].spec.span_bytes
    ):
        room -= spec.span_bytes
        if room >= 0:
            yield name, spec.laid_out(array).tobytes()
        else:
            yield name, link.stage(array, spec, timeout)


def fill(
    messages: Mapping[Key, program_pb2.ProgramOperand],
    arrays: Iterable[tuple[Key, compute_pb2.InlineTensor | Handle]],
) -> Held:
    """Puts arrays into the operands of a program; returns what must live meanwhile.

    Args:
        messages: The operands.
        arrays: As `sources` yields them.
    """
    held: Held = []
    for key, source in arrays:
        if isinstance(source, Handle):
            messages[key].tensor = source.full_name
            held.append(source)
        else:
            messages[key].inline.CopyFrom(source)
    return held


def _packed(array: np.ndarray) -> Array:
    return Array(array, TensorSpec(array.shape, array.dtype))

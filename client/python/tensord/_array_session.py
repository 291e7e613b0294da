"""The session of `tensord.array`, and what it has downloaded."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tensord._conversions import refuse_lists
from tensord._elementwise import refuse_masked, session_of
from tensord._tensor_handle import TensorHandle

_INLINE_BYTES = 64 << 10


class Downloads:
    """Counts the tensors of which somebody asked for the elements."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.total = 0

    def count(self) -> None:
        """Counts another one."""
        with self._lock:
            self.total += 1


class Current:
    """The session in which new tensors are made that say nothing of one.

    Attributes:
        session: That one, if there is one.
        opener: Opens a session with the server of an address.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.session: Any = None
        self.opener: Callable[[str], Any] | None = None

    def get(self) -> Any:
        """Returns the session; opens that of $TENSORD_ADDRESS if there is none yet.

        Raises:
            RuntimeError: There is neither.
        """
        with self._lock:
            if self.session is None:
                address = os.environ.get("TENSORD_ADDRESS")
                if not address or self.opener is None:
                    raise RuntimeError(
                        "tensord.array has no session: call tensord.array.use(session), "
                        "or use(address), or set $TENSORD_ADDRESS"
                    )
                self.session = self.opener(address)
            return self.session


DOWNLOADS = Downloads()
CURRENT = Current()


def tensor_of(value: Any, *others: Any, dtype: np.dtype | None = None) -> Any:
    """Returns a tensor as it is, and everything else on the server.

    Args:
        value: A tensor, an array or a number.
        *others: Operands beside it, whose session it gets, or else the current one.
        dtype: What an array becomes.
    """
    if isinstance(value, TensorHandle):
        return value
    refuse_lists(value)
    refuse_other_libraries(value)
    session = session_of(*others)
    array = np.asarray(value, dtype)
    return placed(CURRENT.get() if session is None else session, array)


def refuse_other_libraries(value: Any) -> None:
    """Refuses what NumPy would make another thing of.

    Raises:
        TypeError: It is a masked array, whose mask would be lost, or Dask's, which would
            be computed here.
    """
    if isinstance(value, TensorHandle):
        return
    refuse_masked(value)
    if hasattr(value, "__dask_graph__"):
        raise TypeError(
            "got a Dask array, which would be computed here; `x.map_blocks(asarray)` "
            "makes tensors of its chunks, and NumPy's functions leave it to Dask"
        )


def placed(session: Any, array: np.ndarray) -> Any:
    """Returns an array on the server; a small one goes with the other operations."""
    if array.nbytes > min(_INLINE_BYTES, session.link.info.limits.max_inline_bytes):
        return session.upload(array)
    modes = range(array.ndim)
    return session.permute(array, modes, modes)

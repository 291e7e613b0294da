"""What `tensord.array` says of dtypes, devices and itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensord import _dtypes as dtypes
from tensord._array_session import CURRENT

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Says whether a dtype is of a kind, or of one of several.

    Args:
        dtype: The dtype.
        kind: "bool", "integral", "signed integer", "unsigned integer", "real floating",
            "complex floating", "numeric", another dtype, or a tuple of these.

    Raises:
        ValueError: It is none of these.
    """
    known = dtypes.wire_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(known, each) for each in kind)
    if not isinstance(kind, str):
        return known == dtypes.wire_dtype(kind)
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}, wanted one of {', '.join(_KINDS)}")
    return ("f" if dtypes.is_floating(known) else known.kind) in _KINDS[kind]


class NamespaceInfo:
    """What the array API asks of a namespace, as `__array_namespace_info__` returns it."""

    def capabilities(self) -> dict[str, Any]:
        """Returns what it can do."""
        return {
            "boolean indexing": False,
            "data-dependent shapes": False,
            "max dimensions": 64,
        }

    def default_device(self) -> str:
        """Returns the device of the current session."""
        device: str = CURRENT.get().device
        return device

    def devices(self) -> list[str]:
        """Returns the devices on which tensors are made."""
        return [self.default_device()]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype]:
        """Returns the dtypes of tensors that are made without one."""
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(
        self, *, device: str | None = None, kind: Any = None
    ) -> dict[str, np.dtype]:
        """Returns the dtypes of the array API that tensors can have, by name."""
        names = (
            "bool int8 int16 int32 int64 uint8 float32 float64 complex64 complex128"
        )
        found = {name: np.dtype(name) for name in names.split()}
        if kind is None:
            return found
        return {name: dtype for name, dtype in found.items() if isdtype(dtype, kind)}


def namespace_info() -> NamespaceInfo:
    """Returns what the namespace says of itself."""
    return NamespaceInfo()

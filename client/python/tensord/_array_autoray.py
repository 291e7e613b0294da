"""How autoray, and quimb with it, find the functions of `tensord.array`."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from tensord._array_decompositions import (
    eigh_truncated,
    qr_stabilized,
    rsvd,
    svd_rand_truncated,
    svd_truncated,
)
from tensord._array_solving import expm, solve_triangular


def register() -> None:
    """Tells autoray where the functions of tensors are, if it is installed.

    autoray looks for them in the package of a tensor's class. quimb composes its own
    decompositions of many functions, unless there are better ones.
    """
    if importlib.util.find_spec("autoray") is None:
        return
    autoray: Any = importlib.import_module("autoray")
    registry: Any = importlib.import_module("autoray.autoray")
    registry.register_module_alias("tensord", "tensord.array")
    autoray.register_function("tensord", "svd_truncated", svd_truncated)
    autoray.register_function("tensord", "svd_rand_truncated", svd_rand_truncated)
    autoray.register_function("tensord", "linalg.rsvd", rsvd)
    autoray.register_function("tensord", "eigh_truncated", eigh_truncated)
    autoray.register_function("tensord", "qr_stabilized", qr_stabilized)
    autoray.register_function("tensord", "complex", _complex)
    autoray.register_function("tensord", "to_device", _to_device)
    for name in "linalg.expm", "scipy.linalg.expm":
        autoray.register_function("tensord", name, expm)
    for name in "linalg.solve_triangular", "scipy.linalg.solve_triangular":
        autoray.register_function("tensord", name, solve_triangular)


def _complex(re: Any, im: Any) -> Any:
    """Computes complex numbers of their parts."""
    return re + 1j * im


def _to_device(x: Any, device: str | None) -> Any:
    """Returns the tensor itself: a session has one device, of which the kind will do."""
    if device is None or str(device) == x.device.partition(":")[0]:
        return x
    return x.to_device(str(device))

"""The C++ client of tensord, for the package `tensord`, which is what programs use."""

from tensord_native._core import (
    CallError,
    Calls,
    Channel,
    PendingCall,
    Stream,
    Transfers,
    version as __version__,
)

__all__ = [
    "CallError",
    "Calls",
    "Channel",
    "PendingCall",
    "Stream",
    "Transfers",
    "__version__",
]

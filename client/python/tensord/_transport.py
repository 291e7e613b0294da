"""What carries calls: the native core, if it is installed, or grpcio."""

from __future__ import annotations

import importlib
import importlib.util
import os
from importlib import metadata
from typing import Any

import grpc

VARIABLE = "TENSORD_IMPLEMENTATION"
_INSTALL = "`pip install ./client/python/native` in a checkout installs it"

Options = tuple[tuple[str, "str | int"], ...]
Pem = tuple["bytes | None", "bytes | None", "bytes | None"]
"""Authorities, the client's key and its certificate; None for none."""


def _core() -> Any:
    """Returns the package `tensord_native` if it is to carry calls, else None.

    Raises:
        ImportError: It should, and is missing, broken or of another version.
        ValueError: The environment asks for something else.
    """
    asked = os.environ.get(VARIABLE) or None
    if asked not in (None, "native", "grpcio"):
        raise ValueError(f"${VARIABLE} is {asked!r}, wanted 'native' or 'grpcio'")
    if asked == "grpcio":
        return None
    if importlib.util.find_spec("tensord_native") is None:
        if asked is None:
            return None
        raise ImportError(
            f"${VARIABLE} is 'native', but there is no tensord-native; {_INSTALL}"
        )
    found: Any = importlib.import_module("tensord_native")
    wanted, got = metadata.version("tensord"), found.__version__
    if got != wanted:
        raise ImportError(
            f"tensord-native is of version {got}, wanted {wanted}, that of tensord; "
            f"{_INSTALL}, and ${VARIABLE}=grpcio does without"
        )
    return found


core: Any = _core()
"""The package `tensord_native`; None where grpcio carries calls."""

implementation: str = "grpcio" if core is None else "native"
"""What carries calls, "native" or "grpcio", as $TENSORD_IMPLEMENTATION may say."""

CALL_ERRORS: tuple[type[Exception], ...] = (
    (grpc.RpcError,) if core is None else (core.CallError, grpc.RpcError)
)
"""What calls raise that do not end with OK."""

FAILURES: tuple[type[Exception], ...] = (*CALL_ERRORS, ValueError)
"""The same, and the word for a channel that another thread has closed meanwhile."""


def grpcio_channel(
    package: Any, address: str, options: Options, pem: Pem | None
) -> Any:
    """Returns a channel of `grpc` or `grpc.aio`."""
    if pem is None:
        return package.insecure_channel(address, options=options)
    credentials = grpc.ssl_channel_credentials(*pem)
    return package.secure_channel(address, credentials, options=options)

"""What clients send that keep to HTTP/2, and to nothing that gRPC asks for."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def opening(settings: bytes = b"") -> bytes:
    """The beginning of a connection."""
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, settings)


def headers(path: str, stream: int, more: Sequence[tuple[str, str]] = (), **metadata: str) -> bytes:
    """The beginning of a call, without its request; keys of `more` may be there several times."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "te": "trailers",
        "content-type": "application/grpc",
    } | metadata
    literals = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in [*fields.items(), *more]
    )
    return frame(1, 4, stream, literals)


def request(message: bytes, stream: int) -> bytes:
    """The end of a call."""
    return frame(0, 1, stream, b"\0" + len(message).to_bytes(4, "big") + message)


# Settings of a client that takes no byte of an answer.
NO_WINDOW = (4).to_bytes(2, "big") + bytes(4)


def deaf_call(path: str, message: bytes) -> bytes:
    """A call of which the client takes no byte of the answer."""
    return opening(NO_WINDOW) + headers(path, 1) + request(message, 1)


def ends_of_streams(received: bytes) -> set[int]:
    """Streams that frames say have ended."""
    ends, at = set(), 0
    while at + 9 <= len(received):
        kind, flags = received[at + 3], received[at + 4]
        if kind == 3 or (kind in (0, 1) and flags & 1):
            ends.add(int.from_bytes(received[at + 5 : at + 9], "big"))
        at += 9 + int.from_bytes(received[at : at + 3], "big")
    return ends


class Raw:
    """A connection of a client that keeps to HTTP/2 alone."""

    def __init__(self, address: str, settings: bytes = b"") -> None:
        if address.startswith("unix:"):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(address.removeprefix("unix:"))
        else:
            host, port = address.split(":")
            self._socket = socket.create_connection((host, int(port)))
        self._socket.settimeout(20)
        self._socket.sendall(opening(settings))
        self._received = b""

    def send(self, more: bytes) -> None:
        self._socket.sendall(more)

    def is_broken_off(self) -> bool:
        """Whether the server has ended it; what it has sent before that stays where it is."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(frame(6, 0, 0, bytes(8)))  # a ping
            return False
        return True

    def close(self) -> None:
        self._socket.close()

"""What clients send that keep to HTTP/2, and to nothing that gRPC asks for."""

from __future__ import annotations

import contextlib
import select
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

    def send_until_broken_off(self, more: bytes) -> None:
        """Sends it, or what the server takes of it before it ends the connection."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(more)

    def is_broken_off(self) -> bool:
        """Whether the server has ended it; what it has sent before that stays where it is."""
        ended = select.poll()
        ended.register(self._socket, select.POLLRDHUP)
        return bool(ended.poll(0))

    def close(self) -> None:
        self._socket.close()


class Polite(Raw):
    """One that sends as much as it may, and looks at what it receives."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._first = 65535  # what a call may send at first
        self._window = 65535  # of the connection
        self._windows: dict[int, int] = {}  # of calls, beside that
        self.ended: set[int] = set()  # calls
        self.receive()

    def begin(self, path: str, stream: int) -> None:
        self._windows[stream] = 0
        self.send(headers(path, stream))

    def send_data(self, stream: int, data: bytes) -> int:
        """Sends as much as may be now, and one frame at most; how many bytes that is. If none,
        more may be sent when something has come."""
        most = min(self._first + self._windows[stream], self._window, 16384, len(data))
        if most > 0:
            self.send(frame(0, 0, stream, data[:most]))
            self._windows[stream] -= most
            self._window -= most
        return max(most, 0)

    def receive(self, *, waits: bool = True) -> None:
        """Takes what has come or, if it `waits`, comes next."""
        if not waits and not select.select([self._socket], [], [], 0)[0]:
            return
        received = self._socket.recv(1 << 16)
        if not received:
            raise ConnectionResetError("the server has broken the connection off")
        self._received += received
        while len(self._received) >= 9:
            length = int.from_bytes(self._received[:3], "big")
            kind, flags = self._received[3:5]
            stream = int.from_bytes(self._received[5:9], "big")
            payload = self._received[9 : 9 + length]
            if len(payload) < length:
                break
            self._received = self._received[9 + length :]
            self._take(kind, flags, stream, payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == 8 and stream == 0:
            self._window += int.from_bytes(payload, "big")
        elif kind == 8:
            self._windows[stream] += int.from_bytes(payload, "big")
        elif kind == 4 and not flags & 1:
            for at in range(0, len(payload), 6):
                if payload[at : at + 2] == b"\0\4":
                    self._first = int.from_bytes(payload[at + 2 : at + 6], "big")
            self.send(frame(4, 1, 0, b""))
        elif kind == 6 and not flags & 1:
            self.send(frame(6, 1, 0, payload))
        elif kind == 3 or (kind in (0, 1) and flags & 1):
            self.ended.add(stream)

from collections.abc import Callable, Sequence
from typing import Union

from typing_extensions import Buffer

Metadata = Union[Sequence[tuple[str, str]], None]
Arguments = tuple[int, str, list[tuple[str, bytes]]]

version: str

class CallError(Exception):
    args: Arguments

class Channel:
    def __init__(
        self,
        address: str,
        options: Sequence[tuple[str, int | str]],
        tls: tuple[bytes | None, bytes | None, bytes | None] | None,
    ) -> None: ...
    def call(
        self, method: str, request: bytes, timeout: float | None, metadata: Metadata
    ) -> bytes: ...
    def close(self) -> None: ...

class PendingCall:
    def __init__(
        self,
        channel: Channel,
        method: str,
        request: bytes,
        timeout: float | None,
        metadata: Metadata,
    ) -> None: ...
    def result(self) -> bytes: ...

class Stream:
    def __init__(
        self,
        channel: Channel,
        method: str,
        timeout: float | None,
        metadata: Metadata,
        packs: bool = False,
    ) -> None: ...
    def write(self, message: bytes) -> bool: ...
    def end_writes(self) -> None: ...
    def read(self, gather_seconds: float) -> list[bytes]: ...
    def flush(self) -> None: ...
    def hurry(self) -> None: ...
    def cancel(self) -> None: ...
    def finish(self) -> None: ...

class Calls:
    def __init__(self) -> None: ...
    @property
    def descriptor(self) -> int: ...
    def begin(
        self,
        channel: Channel,
        method: str,
        request: bytes,
        timeout: float | None,
        metadata: Metadata,
    ) -> int: ...
    def take(self) -> list[tuple[int, bytes | Arguments]]: ...
    def cancel(self, number: int) -> None: ...

class Transfers:
    def __init__(self, channel: Channel) -> None: ...
    def upload(
        self,
        tensor: str,
        data: Buffer,
        chunk_bytes: int,
        timeout: float,
        metadata: Metadata,
        progress: Callable[[int], None] | None,
    ) -> None: ...
    def download(
        self,
        tensor: str,
        data: Buffer,
        chunk_bytes: int,
        timeout: float,
        metadata: Metadata,
        progress: Callable[[int], None] | None,
    ) -> None: ...

"""Messages as they look on the wire, written by hand where that takes less time."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """Returns a number that is not negative."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT = [bytes([value]) for value in range(0x80)]


def length_delimited(data: bytes) -> bytes:
    """Returns what follows the tag of bytes, a string or a message."""
    return varint(len(data)) + data


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns the number at a place of a message, and the place behind it.

    Raises:
        IndexError: The message ends before.
    """
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


_BATCH = 15 << 3 | 2
"""The tag of the field `batch` of a stream's messages."""


def batch_of(messages: list[bytes]) -> bytes:
    """Returns one message for several, which are its batch; a single one as it is."""
    if len(messages) == 1:
        return messages[0]
    return b"".join(bytes([_BATCH]) + length_delimited(each) for each in messages)


def messages_of(message: bytes) -> list[bytes]:
    """Returns the batch of a message; the message itself if it is anything else."""
    messages = []
    at = 0
    try:
        while at < len(message) and message[at] == _BATCH:
            size, begin = read_varint(message, at + 1)
            at = begin + size
            messages.append(message[begin:at])
    except IndexError:
        return [message]
    return messages if messages and at == len(message) else [message]

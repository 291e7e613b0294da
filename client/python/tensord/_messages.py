"""Dataclasses that are filled from messages."""

from __future__ import annotations

import dataclasses
import datetime
import operator
from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Report = TypeVar("Report")


def enum_values(enum: Any, prefix: str) -> dict[str, Any]:
    """Returns the values of an enum by their names, but for the unspecified one.

    Args:
        enum: E.g. `compute_pb2.Selection`.
        prefix: What all names begin with; it falls away, and capital letters do.
    """
    return {
        name.removeprefix(prefix).lower(): value
        for name, value in enum.items()
        if value != 0
    }


def nested(cls: type) -> Any:
    """A field that is a message, or a tuple of messages, of the class `cls`."""
    return dataclasses.field(metadata={"of": cls})


def seconds(source: str) -> Any:
    """A field that is the Duration `source` in seconds."""
    return dataclasses.field(metadata={"source": source})


def name_in(names: Mapping[str, int]) -> Any:
    """A field that is an enum's value, by its name."""
    return dataclasses.field(
        metadata={"names": {value: name for name, value in names.items()}}
    )


def known_here(default: Any) -> Any:
    """A field that no message has."""
    return dataclasses.field(default=default, metadata={"is_known_here": True})


def explained(field: str, cls: type | None = None) -> Any:
    """A field of a plan that is in its explanation."""
    return dataclasses.field(metadata={"source": f"explanation.{field}", "of": cls})


def from_message(cls: type[Report], message: Message) -> Report:
    """Returns the message as a value of the dataclass `cls`."""
    values = {
        field.name: _plain(
            operator.attrgetter(field.metadata.get("source", field.name))(message),
            field.metadata,
        )
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        if "is_known_here" not in field.metadata
    }
    return cls(**values)


def _plain(value: Any, metadata: Mapping[str, Any]) -> Any:
    """Returns the value of a field, which `metadata` says how to read."""
    cls, names = metadata.get("of"), metadata.get("names")
    if isinstance(value, Duration):
        return value.seconds + value.nanos / 1e9
    if isinstance(value, Timestamp):
        known = value.seconds or value.nanos
        return value.ToDatetime(datetime.timezone.utc) if known else None
    if isinstance(value, Message):
        return from_message(cls, value) if cls else value
    if names is not None:
        return names.get(value, str(value))
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    return tuple(from_message(cls, item) if cls else item for item in value)

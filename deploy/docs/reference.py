"""Makes references of the contract's comments and of the Python client's docstrings.

Usage: reference.py CONTRACT FOLDER. CONTRACT is what protoc writes of the proto files with
--include_source_info; FOLDER gets grpc.md and python.md.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import descriptor_pb2

import tensord

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in Field.Type.items()
    if name not in ("TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP")
}


def cell(text: str) -> str:
    """Text that fits into a table."""
    return " ".join(text.split()).replace("|", "\\|")


class Contract:
    """The pages of one proto file."""

    def __init__(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        self.file = file
        self._comments = {
            tuple(location.path): location.leading_comments or location.trailing_comments
            for location in file.source_code_info.location
        }

    def _comment(self, *path: int) -> str:
        lines = self._comments.get(path, "").splitlines()
        return "\n".join(line.removeprefix(" ") for line in lines).strip()

    @staticmethod
    def _short(name: str) -> str:
        return name.removeprefix(".tensord.v1.").removeprefix(".google.protobuf.")

    def _type(self, field: Field, message: descriptor_pb2.DescriptorProto) -> str:
        for nested in message.nested_type:
            if nested.options.map_entry and field.type_name.endswith(f".{nested.name}"):
                key, value = (self._type(part, nested) for part in nested.field)
                return f"map of {key} to {value}"
        name = SCALARS.get(field.type) or self._short(field.type_name)
        return f"repeated {name}" if field.label == Field.LABEL_REPEATED else name

    def _message(
        self, message: descriptor_pb2.DescriptorProto, path: tuple[int, ...], scope: str
    ) -> Iterator[str]:
        name = f"{scope}{message.name}"
        yield f"### {name}\n\n{self._comment(*path)}\n"
        if message.field:
            yield "| field | type | |\n| --- | --- | --- |"
            for i, field in enumerate(message.field):
                what = cell(self._comment(*path, 2, i))
                yield f"| `{field.name}` = {field.number} | {self._type(field, message)} | {what} |"
            yield ""
        for i, nested in enumerate(message.nested_type):
            if not nested.options.map_entry:
                yield from self._message(nested, (*path, 3, i), f"{name}.")
        for i, enum in enumerate(message.enum_type):
            yield from self._enum(enum, (*path, 4, i), f"{name}.")

    def _enum(
        self, enum: descriptor_pb2.EnumDescriptorProto, path: tuple[int, ...], scope: str = ""
    ) -> Iterator[str]:
        yield f"### {scope}{enum.name}\n\n{self._comment(*path)}\n"
        yield "| value | |\n| --- | --- |"
        for i, value in enumerate(enum.value):
            yield f"| `{value.name}` = {value.number} | {cell(self._comment(*path, 2, i))} |"
        yield ""

    def lines(self) -> Iterator[str]:
        yield f"## {self.file.name.removeprefix('tensord/v1/')}\n"
        for i, service in enumerate(self.file.service):
            yield f"### {service.name}\n\n{self._comment(6, i)}\n"
            for j, rpc in enumerate(service.method):
                asks = "stream of " * rpc.client_streaming + self._short(rpc.input_type)
                gives = "stream of " * rpc.server_streaming + self._short(rpc.output_type)
                yield f"#### {rpc.name}\n\n`{asks}` -> `{gives}`\n\n{self._comment(6, i, 2, j)}\n"
        for i, message in enumerate(self.file.message_type):
            yield from self._message(message, (4, i), "")
        for i, enum in enumerate(self.file.enum_type):
            yield from self._enum(enum, (5, i))


def docstring(thing: object) -> str:
    """In Markdown: sections are bold, what they name is a list."""
    lines = []
    is_in_section = False
    for line in (inspect.getdoc(thing) or "").splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Yields|Attributes):", line):
            lines.append(f"\n**{line[:-1]}**\n")
            is_in_section = True
        elif is_in_section and re.match(r" {4}\S", line):
            lines.append("- " + line.strip())
        else:
            is_in_section = is_in_section and (not line or line.startswith("    "))
            lines.append(line.removeprefix("    ") if is_in_section else line)
    text = "\n".join(lines)
    # Examples are code.
    return re.sub(
        r"((?:^(?:>>>|\.\.\.).*\n?)+)",
        lambda example: f"```python\n{example[1].rstrip()}\n```\n",
        text,
        flags=re.MULTILINE,
    )


def signature(thing: object) -> str:
    try:
        text = str(inspect.signature(thing))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return text.replace("'", "")


def is_ours(member: object) -> bool:
    """Whether it is the client's own, and says what it is."""
    code = member.fget if isinstance(member, property) else member
    module = getattr(code, "__module__", None) or ""
    return module.startswith("tensord") and bool(inspect.getdoc(member))


def python() -> Iterator[str]:
    yield "# The Python client\n"
    for name in sorted(dir(tensord)):
        thing = getattr(tensord, name)
        if name.startswith("_") or inspect.ismodule(thing):
            continue
        if inspect.isclass(thing):
            yield f"## {name}\n\n{docstring(thing)}\n"
            for method_name, method in inspect.getmembers(thing):
                if method_name.startswith("_") or not is_ours(method):
                    continue
                if inspect.isroutine(method):
                    title = f"{name}.{method_name}"
                    yield f"### {title}\n\n```python\n{title}{signature(method)}\n```\n"
                    yield f"{docstring(method)}\n"
                elif isinstance(method, property):
                    yield f"### {name}.{method_name}\n\n{docstring(method)}\n"
        elif inspect.isroutine(thing):
            yield f"## {name}\n\n```python\n{name}{signature(thing)}\n```\n\n{docstring(thing)}\n"


def grpc(contract: Path) -> Iterator[str]:
    yield "# The gRPC contract, package `tensord.v1`\n"
    files = descriptor_pb2.FileDescriptorSet.FromString(contract.read_bytes())
    for file in files.file:
        if file.name.startswith("tensord/"):
            yield from Contract(file).lines()


def main(contract: str, folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, lines in (("grpc", grpc(Path(contract))), ("python", python())):
        (Path(folder) / f"{name}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

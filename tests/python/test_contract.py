"""Promise 9: the contract of version 1 is only added to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from google.protobuf import descriptor_pb2

from conftest import REPOSITORY
from tensord.v1 import (
    access_pb2,
    admin_pb2,
    compute_pb2,
    error_pb2,
    layout_pb2,
    operand_pb2,
    operators_pb2,
    plan_cache_pb2,
    plan_pb2,
    program_pb2,
    session_pb2,
    stages_pb2,
    tensor_pb2,
    trace_pb2,
    view_pb2,
)

# v1.descriptors is what protoc --descriptor_set_out writes of the released contract.
GOLDEN = Path(__file__).with_name("v1.descriptors")
CONTRACT = [
    access_pb2,
    admin_pb2,
    compute_pb2,
    error_pb2,
    layout_pb2,
    operand_pb2,
    operators_pb2,
    plan_cache_pb2,
    plan_pb2,
    program_pb2,
    session_pb2,
    stages_pb2,
    tensor_pb2,
    trace_pb2,
    view_pb2,
]


def declared(file: descriptor_pb2.FileDescriptorProto) -> Iterator[str]:
    """What clients rely on, a line each."""

    def of_message(scope: str, message: descriptor_pb2.DescriptorProto) -> Iterator[str]:
        scope = f"{scope}.{message.name}"
        yield f"message {scope}"
        for field in message.field:
            oneof = ""
            if field.HasField("oneof_index"):
                oneof = message.oneof_decl[field.oneof_index].name
            yield (
                f"field {scope}.{field.name} = {field.number}, type {field.type} "
                f"{field.type_name}, label {field.label} {oneof}"
            )
        for inner in message.nested_type:
            yield from of_message(scope, inner)
        for enum in message.enum_type:
            yield from of_enum(scope, enum)

    def of_enum(scope: str, enum: descriptor_pb2.EnumDescriptorProto) -> Iterator[str]:
        for value in enum.value:
            yield f"enum {scope}.{enum.name}.{value.name} = {value.number}"

    for message in file.message_type:
        yield from of_message(file.package, message)
    for enum in file.enum_type:
        yield from of_enum(file.package, enum)
    for service in file.service:
        for method in service.method:
            yield (
                f"rpc {file.package}.{service.name}.{method.name}: {method.input_type}"
                f"{' stream' * method.client_streaming} -> {method.output_type}"
                f"{' stream' * method.server_streaming}"
            )


def test_promise_9_version_1_goes_on_as_it_is() -> None:
    golden = descriptor_pb2.FileDescriptorSet.FromString(GOLDEN.read_bytes())
    now = set()
    for module in CONTRACT:
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        now |= set(declared(file))
    released = {line for file in golden.file for line in declared(file)}
    assert len(released) > 500
    files = {f"tensord/v1/{each.name}" for each in (REPOSITORY / "proto/tensord/v1").iterdir()}
    assert {module.DESCRIPTOR.name for module in CONTRACT} == files
    assert {file.name for file in golden.file} == files
    assert sorted(released - now) == []


def test_each_rpc_says_who_may_call_it_and_what_it_is() -> None:
    methods = [
        method
        for module in CONTRACT
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    assert len(methods) > 50
    # Not said, or said to be unspecified: the door would take either as it likes.
    silent = [
        method.full_name
        for method in methods
        for option in (access_pb2.access, access_pb2.kind)
        if method.GetOptions().Extensions[option] == 0
    ]
    assert silent == []

"""Operations that were asked for before, whose requests are written anew by name.

The text has been read then, and the options checked: a request is what it was but for
the names, or the data, of its operands.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arguments import factor_value
from tensord._einsum_operations import EinsumOperations
from tensord._expectations import expected_factors, expected_result
from tensord._factorizations import Factorizations, Names
from tensord._handle import Held
from tensord._operations import Input
from tensord._settings import Options, Settings
from tensord._shared_memory import lease_of
from tensord._specs import TensorSpec
from tensord._subscripts import single_operation
from tensord._tensor_handle import TensorHandle
from tensord._wire import length_delimited, varint
from tensord.errors import Error
from tensord.v1 import compute_pb2

Result = TypeVar("Result", bound=TensorHandle)

# Of a result that comes at once, and of its operands.
_MOST_DATA_BYTES = 32 << 10
_MOST = 4096  # Kinds of sums that are remembered.
_STREAM_FIELDS = {
    name: field.number
    for name, field in compute_pb2.ExecuteStreamRequest.DESCRIPTOR.fields_by_name.items()
}
_LENGTH_DELIMITED = 2
_NO_FACTORS: Mapping[str, Any] = {}
# A Scalar: its length, and two doubles behind their tags.
_SCALAR, _SCALAR_SIZE = struct.Struct("<BBdBd"), 18
# Options of factorizations that say nothing of where results go, or how long they may take.
_SAY_WHAT = {
    "method",
    "rank",
    "cutoff",
    "relative_cutoff",
    "discarded_squares",
    "relative_discarded_squares",
    "absorb",
    "renormalize",
    "randomized",
    "oversampling",
    "power_iterations",
    "seed",
}


@dataclasses.dataclass(slots=True)
class Request:
    """All of a request but for the names, or the data, of its operands.

    A message that is written in parts is read as one, so those follow at its end.

    Attributes:
        operation: "contract", "permute", "reduce", "elementwise", "solve" or "factorize".
        head: What is always the same.
        tags: Of the operands, in their order.
        specs: What the results are like.
        stream_tag: That of the operation in an `ExecuteStreamRequest`.
        output_tags: Those of the results.
        factor_tags: Those of factors, by their names.
        likenesses: `TensorHandle.likeness` of each result, once there were some.
        is_confirmed: Whether the server has said of results that they are like `specs`.
    """

    operation: str
    head: bytes
    tags: tuple[bytes, ...]
    specs: tuple[TensorSpec, ...]
    stream_tag: bytes
    output_tags: tuple[bytes, ...]
    factor_tags: dict[str, bytes] = dataclasses.field(default_factory=dict)
    likenesses: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    is_confirmed: bool = False

    def message(
        self, operands: tuple[Any, ...], factors: Mapping[str, Any] = _NO_FACTORS
    ) -> bytes:
        """Returns the request for operands and factors.

        Raises:
            InvalidArgument, TypeError: As `factor_value` says.
        """
        parts = [self.head]
        for name, tag in self.factor_tags.items():
            value = factor_value(name, factors[name])
            parts += (tag, _SCALAR.pack(_SCALAR_SIZE, 9, value.real, 17, value.imag))
        for tag, operand in zip(self.tags, operands):
            parts.append(tag)
            if type(operand) is np.ndarray:
                data = length_delimited(_DATA + length_delimited(operand.tobytes()))
                parts.append(length_delimited(_INLINE + data))
            else:
                parts.append(operand.operand())
        return b"".join(parts)

    def result(
        self,
        session: Any,
        cls: type[Result],
        result: compute_pb2.Result,
        sent: bytes,
    ) -> Result:
        """Returns the new tensor that a response tells of, which is the only one.

        Args:
            session: Its session.
            cls: Its class.
            result: What the response says.
            sent: The request.
        """
        if not self.likenesses:
            made = cls.of_result(session, result, None, owned=True)
            self.likenesses = [made.likeness()]
        else:
            name = result.tensor.name
            made = cls.of_likeness(session, self.likenesses[0], name, result.report)
        if result.data:
            made.contents_as_of(sent, result.data)
        return made

    def streamed(self, message: bytes, tensor_ids: list[str]) -> bytes:
        """Returns the same as part of a stream, with a name for each result."""
        for tag, tensor_id in zip(self.output_tags, tensor_ids):
            name = length_delimited(_TENSOR_ID + length_delimited(tensor_id.encode()))
            message += tag + name
        return self.stream_tag + length_delimited(message)

    def streamed_output(self, fields: bytes) -> bytes:
        """Returns what follows a streamed request that says more of its first result."""
        output = self.output_tags[0] + length_delimited(fields)
        return self.stream_tag + length_delimited(output)

    def streamed_into(self, message: bytes, out: TensorHandle) -> bytes:
        """Returns the same with a tensor that is written, the only result."""
        return self.stream_tag + length_delimited(
            message + self.output_tags[0] + out.output()
        )


class Asked(NamedTuple):
    """An operation as `Operations._submit` takes it."""

    operation: str
    inputs: Mapping[str, Input]
    modes_d: Any
    factors: Mapping[str, Any]
    options: Mapping[str, Any]
    fields: Mapping[str, Any]


class Shortcuts:
    """The requests of a session that were made before. Safe for use by many threads."""

    def __init__(
        self, tensor_class: type[TensorHandle], link: Any, *, awaits: bool
    ) -> None:
        """
        Args:
            tensor_class: Of tensors that may be operands.
            link: That of the session.
            awaits: Whether somebody waits for each response. Small results of arrays
                alone come with it then, as they are likely to be looked at at once.
        """
        self._awaits = awaits
        self._tensor_class = tensor_class
        self._link = link
        self._most_bytes: int = link.info.limits.max_inline_bytes
        self._known: dict[tuple[Any, ...], Request | None] = {}

    def _is_ours(self, operand: Any) -> bool:
        """Whether it is a tensor of the session."""
        return type(operand) is self._tensor_class and operand.link is self._link

    def find(self, subscripts: Any, operands: tuple[Any, ...]) -> Request | None:
        """Returns the request of `einsum(subscripts, *operands)` without options.

        Returns:
            None where that is not one operation on tensors, and on arrays that go
            inline; or is wrong.
        """
        if type(subscripts) is not str:
            return None
        key: list[Any] = [subscripts]
        size = 0
        for operand in operands:
            if self._is_ours(operand):
                key += (operand.shape, operand.dtype)
            elif type(operand) is np.ndarray:
                if operand.base is not None and lease_of(operand) is not None:
                    return None  # It is read where it is.
                key += (operand.shape, operand.dtype, None)
                size += operand.nbytes
            else:
                return None
        if size > self._most_bytes:
            return None
        known = tuple(key)
        try:
            return self._known[known]
        except KeyError:
            pass
        try:
            request = self._made(subscripts, operands)
        except (Error, TypeError):
            return None  # Whoever makes it says what is wrong.
        self._remember(known, request)
        return request

    def find_factorization(
        self, subscripts: Any, a: Any, options: Mapping[str, Any]
    ) -> Request | None:
        """Returns the request of `factorize(subscripts, a, **options)`.

        Returns:
            None where the operand is no tensor, or results are told where to go; or
            something is wrong.
        """
        if not self._is_ours(a) or not options.keys() <= _SAY_WHAT:
            return None
        known = (
            "factorize",
            subscripts,
            a.shape,
            a.dtype,
            *options.items(),
            *map(type, options.values()),
        )
        try:
            return self._known[known]
        except KeyError:
            pass
        except TypeError:
            return None  # Something cannot be told apart.
        try:
            recorder = _Recorder(self._link)
            _, message = recorder.factorize(subscripts, _stand_in(a), **options)
        except (Error, TypeError):
            return None
        request = _request(
            "factorize", message, {"a": a}, dict(expected_factors(message, a))
        )
        self._remember(known, request)
        return request

    def find_operation(self, asked: Asked) -> Request | None:
        """Returns the request of an operation.

        Returns:
            None where an operand is neither a tensor nor an array that goes inline, an
            option says how the operation is carried out, or only the server knows what
            the result is like; or something is wrong.
        """
        options = asked.options
        if options.get("out") is not None and options.get("dtype") is not None:
            return None  # Whoever makes it says what is wrong.
        key: list[Any] = ["operation", asked.operation, _known_modes(asked.modes_d)]
        size = 0
        operand: Any
        for name, (operand, modes, operator) in asked.inputs.items():
            if operand is None:
                continue
            if type(operand) is np.ndarray:
                if operand.base is not None and lease_of(operand) is not None:
                    return None
                size += operand.nbytes
            elif not self._is_ours(operand):
                return None
            key += (name, _known_modes(modes), operator)
            key += (operand.shape, operand.dtype, type(operand))
        if size > self._most_bytes:
            return None
        for name, value in options.items():
            if value is None:
                continue
            if name == "out" and self._is_ours(value):
                key += (name, value.shape, value.dtype)
            elif name in ("dtype", "compute_type"):
                key += (name, value)
            else:
                return None
        key += asked.factors
        key += (item for item in asked.fields.items() if item[1] is not None)
        known = tuple(key)
        try:
            return self._known[known]
        except KeyError:
            pass
        except TypeError:
            return None
        try:
            request = self._recorded(asked)
        except (Error, TypeError, ValueError):
            return None
        self._remember(known, request)
        return request

    def _recorded(self, asked: Asked) -> Request | None:
        operation, inputs, modes_d, factors, options, fields = asked
        spec = expected_result(inputs, modes_d, cast(Options, options), fields)
        operands: dict[str, Any] = {
            name: each.tensor
            for name, each in inputs.items()
            if each.tensor is not None
        }
        if spec is None or any(
            each.dtype != dtypes.wire_dtype(each.dtype) for each in operands.values()
        ):
            return None
        stand_ins = {
            name: Input(_stand_in(operand), inputs[name].modes, inputs[name].operator)
            for name, operand in operands.items()
        }
        how: Any = {name: each for name, each in options.items() if name != "out"}
        _, message = _Recorder(self._link).submit(
            operation, stand_ins, modes_d, factors, how, fields
        )
        if options.get("out") is not None:
            message.d.ClearField("order")
            message.d.ClearField("element_type")
        for name in factors:
            message.ClearField(name)
        return _request(operation, message, operands, {"d": spec}, tuple(factors))

    def _remember(self, known: tuple[Any, ...], request: Request | None) -> None:
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[known] = request

    def _made(self, subscripts: str, operands: tuple[Any, ...]) -> Request | None:
        shapes = [operand.shape for operand in operands]
        dtypes = {operand.dtype for operand in operands}
        read = single_operation(subscripts, shapes) if 1 <= len(operands) <= 2 else None
        if read is None or len(dtypes) > 1:
            return None
        extents = {
            label: extent
            for labels, shape in zip(read.inputs, shapes)
            for label, extent in zip(labels, shape)
        }
        shape = tuple(extents[label] for label in read.output)
        spec = TensorSpec(shape, *dtypes)
        if any(operand.dtype != spec.dtype for operand in operands):
            return None  # Of another byte order.
        stand_ins = [_stand_in(operand) for operand in operands]
        operation, message = _Recorder(self._link).einsum(subscripts, *stand_ins)
        message.d.with_data = all(type(each) is np.ndarray for each in operands) and (
            self._awaits
            and spec.span_bytes + sum(each.nbytes for each in operands)
            <= _MOST_DATA_BYTES
        )
        return _request(operation, message, dict(zip("ab", operands)), {"d": spec})


def _request(
    operation: str,
    message: Any,
    operands: Mapping[str, Any],
    results: Mapping[str, TensorSpec],
    factors: tuple[str, ...] = (),
) -> Request:
    """Returns what a request has but for its operands, factors and results.

    Args:
        operation: Its name.
        message: The request for arrays like the operands; it is changed.
        operands, results: By their fields.
        factors: The fields of those that the message lacks.
    """
    for name, operand in operands.items():
        if type(operand) is np.ndarray:
            getattr(message, name).inline.ClearField("data")
        else:
            getattr(message, name).ClearField("inline")
    numbers = message.DESCRIPTOR.fields_by_name
    return Request(
        operation,
        message.SerializeToString(),
        tuple(_tag(numbers[name].number) for name in operands),
        tuple(results.values()),
        _tag(_STREAM_FIELDS[operation]),
        tuple(_tag(numbers[name].number) for name in results),
        {name: _tag(numbers[name].number) for name in factors},
    )


def _known_modes(modes: Any) -> Any:
    """Modes as they are told apart; what does not hash is not remembered."""
    if type(modes) in (list, tuple) and all(type(mode) is int for mode in modes):
        return tuple(modes)
    return modes if type(modes) in (str, range) else [modes]


def _stand_in(operand: Any) -> np.ndarray:
    """An array like an operand, without memory of its own."""
    return np.broadcast_to(np.zeros((), operand.dtype), operand.shape)


def _tag(number: int) -> bytes:
    return varint(number << 3 | _LENGTH_DELIMITED)


_INLINE = _tag(compute_pb2.Operand.DESCRIPTOR.fields_by_name["inline"].number)
_DATA = _tag(compute_pb2.InlineTensor.DESCRIPTOR.fields_by_name["data"].number)
_TENSOR_ID = _tag(compute_pb2.Output.DESCRIPTOR.fields_by_name["tensor_id"].number)


class _Recorder(
    EinsumOperations[tuple[str, Any]],
    Factorizations[tuple[str, Any], tuple[str, Any], Names],
):
    """Makes the request of an operation, and sends nothing."""

    def __init__(self, link: Any) -> None:
        self.link = link

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> tuple[str, Any]:
        return operation, request

    def submit(self, *operation: Any) -> tuple[str, Any]:
        """As `Operations._submit`."""
        return self._submit(*operation)

    def _perform_factorization(
        self, request: Any, places: tuple[Settings, ...], held: Held
    ) -> tuple[str, Any]:
        return "factorize", request

    def _sources(self, arrays: Any, timeout: float | None) -> Any:
        for name, array in arrays.items():
            yield name, TensorSpec(array.shape, array.dtype).inline_message()

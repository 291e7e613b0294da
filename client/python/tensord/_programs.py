"""Programs that the server has prepared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arrays import array_of_bytes, array_of_operand
from tensord._blocking_link import BlockingHandle, BlockingLink
from tensord._handle import Held, SessionHandle
from tensord._messages import from_message
from tensord._operations import scalar_message
from tensord._program_operations import (
    Outputs,
    ProgramCall,
    is_number,
    kept_names,
    not_remote,
)
from tensord._program_reports import ProgramInfo, ProgramReport
from tensord._sending import fill, sources
from tensord._session_link import Question
from tensord._settings import Settings
from tensord._specs import TensorSpec, spec_of_message
from tensord._tensor import RemoteTensor
from tensord._tensor_handle import (
    Factor,
    TensorHandle,
    TensorLike,
    TensorSession,
    check_session,
)
from tensord.errors import InvalidArgument
from tensord.v1 import program_pb2

Results = Union[RemoteTensor, np.ndarray, dict[str, Any], None]


class ProgramHandle(SessionHandle):
    """What is known here of a program on the server.

    It runs on operands that have the dtype, shape and strides of those that it was made
    for. Of these it keeps numbers and constants only. A program that the server named is
    deleted after the last reference to this object. One that the user named stays until
    it is deleted or its session ends.

    Attributes:
        session: The session that it belongs to.
        link: What ties that session to the server.
        name: Its name within the session, as `Session.get_program` takes it.
        full_name: Its name on the wire, `sessions/{session}/programs/{program}`.
        device: The device that it runs on.
        text: Its statements or subscripts; "" for NCON's lists.
        is_product: Whether it is one product, which has its operands in their order.
        operands: What its operands are like, by name; numbers are themselves.
        outputs: What its results are like, by name.
        written: Names of operands that it writes.
        constants: Names of operands that it keeps, with what depends on them alone.
    """

    def __init__(
        self, session: Any, message: program_pb2.Program, *, owned: bool
    ) -> None:
        """As `SessionHandle` says."""
        super().__init__(session, message, owned=owned)
        notation = message.source.WhichOneof("notation")
        self.is_product = notation != "statements"
        self.text: str = (
            "" if notation == "ncon" else getattr(message.source, notation or "einsum")
        )
        self.operands: dict[str, TensorSpec | complex] = {
            tensor.name: _spec_or_scalar(tensor) for tensor in message.operands
        }
        self.outputs: dict[str, TensorSpec] = {
            tensor.name: spec_of_message(tensor) for tensor in message.outputs
        }
        self.written: tuple[str, ...] = tuple(
            tensor.name for tensor in message.operands if tensor.is_written
        )
        self.constants: tuple[str, ...] = tuple(
            tensor.name for tensor in message.operands if tensor.is_constant
        )

    def _execution(
        self,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        outputs: Outputs,
        inline: bool,
        settings: Settings,
    ) -> tuple[program_pb2.ExecuteProgramRequest, ProgramCall, Held]:
        """Returns the request that runs it, and what must live meanwhile."""
        values = self._by_name(positional, named)
        messages, held = self._operands(values, settings.timeout)
        request = program_pb2.ExecuteProgramRequest(
            session=self.link.name, name=self.full_name, operands=messages
        )
        kept = kept_names(outputs, settings, inline, self.outputs)
        for output, tensor_id in kept.items():
            if tensor_id or inline:
                request.outputs.add(
                    name=output, tensor_id=tensor_id, inline=bool(inline)
                )
        written = tuple(
            value
            for name in self.written
            if isinstance(value := values.get(name), TensorHandle)
        )
        call = ProgramCall(
            self.text,
            self.is_product,
            {output: tensor_id for output, tensor_id in kept.items() if tensor_id},
            written,
            settings.timeout,
            None,
            outputs=tuple(kept),
        )
        return request, call, held

    def _operands(
        self, values: Mapping[str, Any], timeout: float | None
    ) -> tuple[list[program_pb2.ProgramOperand], Held]:
        """Returns operands as they travel, and what must live meanwhile."""
        held: Held = [self]
        arrays = {}
        messages = {}
        for name, value in values.items():
            message = messages[name] = program_pb2.ProgramOperand(name=name)
            spec = self.operands[name]
            if isinstance(value, TensorHandle):
                check_session(self.link, f"operand {name}", value)
                value.put_in(message)
                held.append(value)
            elif name in self.written:
                raise not_remote(name, value)
            elif name in self.constants and isinstance(spec, TensorSpec):
                array = self._like_prepared(name, spec, value)
                constant = self.link.stage(array, spec, timeout)
                message.tensor = constant.full_name
                held.append(constant)
            elif isinstance(spec, TensorSpec):
                arrays[name] = self._like_prepared(name, spec, value)
            elif is_number(value):
                message.scalar.CopyFrom(scalar_message(name, value))
            else:
                raise InvalidArgument(
                    f"{self._called(name)} is of type {type(value).__name__}, but program "
                    f"{self.name} was made with a number",
                    reason="PROGRAM_OPERAND_DIFFERS",
                )
        held += fill(messages, sources(self.link, arrays, timeout))
        return list(messages.values()), held

    def _like_prepared(self, name: str, spec: TensorSpec, value: Any) -> np.ndarray:
        """Refuses an array that the program was not made for.

        Raises:
            InvalidArgument: It was not (`PROGRAM_OPERAND_DIFFERS`).
        """
        array = array_of_operand(self._called(name), value)
        fits = array.shape == spec.shape and spec.strides is None
        if not fits or not np.can_cast(array.dtype, spec.dtype, "safe"):
            raise InvalidArgument(
                f"{self._called(name)} is an array of {dtypes.wire_dtype(array.dtype)} "
                f"{array.shape}, program {self.name} is for {spec}",
                reason="PROGRAM_OPERAND_DIFFERS",
            )
        return array.astype(spec.dtype, copy=False)

    def _called(self, name: str) -> str:
        return name if self.is_product else f"operand {name}"

    def _by_name(
        self, positional: tuple[Any, ...], named: Mapping[str, Any]
    ) -> dict[str, Any]:
        if positional and isinstance(positional[0], Mapping):
            named = {**positional[0], **named}
            positional = positional[1:]
        wanted = [name for name in self.operands if name not in self.constants]
        if len(positional) > len(wanted):
            raise InvalidArgument(
                f"program {self.name} takes {len(wanted)} operands, got "
                f"{len(positional)}"
                + ("; constants are given by name" if self.constants else ""),
                reason="OPERAND_COUNT_MISMATCH",
            )
        values = dict(zip(wanted, positional))
        for name, value in named.items():
            if name not in self.operands:
                raise InvalidArgument(
                    f"program {self.name} has no operand {name}, wanted "
                    + (", ".join(self.operands) or "none"),
                    reason="NAME_UNKNOWN",
                )
            if name in values:
                raise TypeError(
                    f"operand {name} is given twice, by position and by name"
                )
            values[name] = value
        for name in wanted:
            spec = self.operands[name]
            if name not in values and isinstance(spec, TensorSpec):
                raise InvalidArgument(
                    f"{self._called(name)} of program {self.name} is missing, wanted {spec}",
                    reason="INPUT_MISSING",
                )
        return values

    def __repr__(self) -> str:
        operands = "".join(f"{name}={spec}, " for name, spec in self.operands.items())
        return f"{type(self).__name__}({self.name!r}, {operands}device={self.device!r})"


class Program(ProgramHandle, BlockingHandle):
    """A program whose notation is read and whose paths are found, to be run often.

    >>> program = session.program("D[a,b] := x*A[a,c]*B[c,b]", A=a, B=b, x=1)
    >>> d = program(A=a, B=b, x=0.5)
    """

    session: TensorSession[RemoteTensor, BlockingLink]
    link: BlockingLink

    def __call__(
        self,
        *operands: TensorLike | Factor | Mapping[str, Any],
        outputs: Outputs = None,
        name: str | None = None,
        inline: bool = False,
        timeout: float | None = None,
        **named: TensorLike | Factor,
    ) -> Results:
        """Runs it, in one call.

        Args:
            *operands: Those that are not constant, in the order in which it was made;
                or a mapping from names.
            outputs: Names of results mapped to the names that the tensors get on the
                server; None lets the server choose them.
            name: Name of the only result.
            inline: Returns arrays, which come with the response; nothing is kept.
            timeout: Deadline in seconds.
            **named: Operands by name. Numbers and constants that are left out are those
                that it was made with.

        Returns:
            As `Session.run`.

        Raises:
            InvalidArgument: An operand has another dtype, shape or strides than it was
                made for (`PROGRAM_OPERAND_DIFFERS`), or is missing (`INPUT_MISSING`).
            NotFound: It was deleted (`PROGRAM_NOT_FOUND`), or an operand was.
            Error: As `Session.run`.
        """
        settings = Settings(name=name, timeout=timeout)
        request, call, held = self._execution(
            operands, named, outputs, inline, settings
        )
        results: Results = execute_program(
            self.session, RemoteTensor, request, call, held
        )
        return results

    def describe(self, timeout: float | None = None) -> ProgramInfo:
        """Returns what it is as of now, with its operations and paths.

        Args:
            timeout: Deadline in seconds; None for the default.

        Raises:
            NotFound: It was deleted.
        """
        return from_message(ProgramInfo, self.link.describe(self.full_name, timeout))


def execute_program(
    session: Any,
    tensor_class: type[TensorHandle],
    request: program_pb2.ExecuteProgramRequest,
    call: ProgramCall,
    held: Held,
) -> Any:
    """Runs a program, and returns its results as `Session.run` says.

    Args:
        session: The session that it runs in.
        tensor_class: Of results that stay on the server.
        request: What is sent.
        call: What else there is to know.
        held: What must live meanwhile.
    """
    question = Question(
        "program",
        "ExecuteProgram",
        request,
        call.timeout,
        lambda response: _results(session, tensor_class, response, call),
        held,
        allocates=True,
        errors=call.pointing_out(),
    )
    return session.link.ask(question)


def _results(
    session: Any,
    tensor_class: type[TensorHandle],
    response: program_pb2.ExecuteProgramResponse,
    call: ProgramCall,
) -> Any:
    """Returns the only result of a program, or a dict of them, or None without any."""
    report = from_message(ProgramReport, response.report)
    for tensor in call.written:
        tensor.report = report
    results: dict[str, Any] = {}
    for result in response.results:
        if not result.tensor.name:
            results[result.name] = array_of_bytes(result.tensor, result.data)
            continue
        is_kept = (
            any(call.kept.values()) if call.is_product else result.name in call.kept
        )
        tensor = tensor_class(session, result.tensor, owned=not is_kept)
        tensor.report = report
        results[result.name] = tensor
    # In the order that was asked for.
    results = {
        name: results[name] for name in call.outputs if name in results
    } | results
    if not results:
        return None
    if len(results) == 1:
        return next(iter(results.values()))
    return results


def _spec_or_scalar(tensor: program_pb2.ProgramTensor) -> TensorSpec | complex:
    if not tensor.HasField("scalar"):
        return spec_of_message(tensor)
    value = complex(tensor.scalar.real, tensor.scalar.imaginary)
    return value if value.imag else value.real

"""Programs as NumPy users write them, turned into requests."""

from __future__ import annotations

import abc
import dataclasses
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeGuard, TypeVar, Union

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord import _operators as operators
from tensord._arguments import check_type, factor_value
from tensord._arrays import array_of_operand
from tensord._einsum_operations import (
    EinsumOperations,
    EinsumSettings,
    Known,
    known_operands,
)
from tensord._handle import Held
from tensord._notation import (
    PointingOut,
    Statements,
    einsum_source,
    ncon_source,
    path_options,
    read_statements,
)
from tensord._operations import Outcome, addend_of, scalar_message
from tensord._sending import fill
from tensord._settings import Options, Settings
from tensord._specs import TensorSpec
from tensord._subscripts import Einsum
from tensord._tensor_handle import Factor, TensorHandle, TensorLike, check_session
from tensord.errors import InvalidArgument, Unimplemented
from tensord.v1 import program_pb2, tensor_pb2

ProgramOutcome = TypeVar("ProgramOutcome")
Outputs = Union[str, Sequence[str], Mapping[str, Union[str, None]], None]
"""Names that a program makes, perhaps each with the tensor's name on the server."""


@dataclasses.dataclass(frozen=True)
class ProgramCall:
    """A program that is asked for, besides its spec.

    Attributes:
        text: Its notation as text, for messages; "" for NCON's lists.
        is_product: Whether it is one product, with one result.
        kept: Names that results get on the server, by the program's; "" is that of a
            product.
        written: Existing tensors that it writes.
        timeout: Deadline in seconds.
        name: Name of the one result, or of the prepared program.
        costs: Symbolic costs, for messages.
        outputs: Names of results in the order in which they are returned.
    """

    text: str
    is_product: bool
    kept: Mapping[str, str]
    written: tuple[TensorHandle, ...]
    timeout: float | None
    name: str | None
    costs: str = ""
    outputs: tuple[str, ...] = ()

    def pointing_out(self) -> PointingOut:
        """Returns a context whose errors say where in the notation they are."""
        return PointingOut(self.text, self.costs)


@dataclasses.dataclass(frozen=True)
class After:
    """What `EinsumOperations.einsum` does on top of a program.

    Attributes:
        alpha, beta: Factors.
        addend: What beta scales.
        settings: Where the result goes.
    """

    alpha: Factor
    beta: Factor
    addend: TensorLike | None
    settings: Settings


class ProgramOperations(EinsumOperations[Outcome], Generic[Outcome, ProgramOutcome]):
    """The operations, and programs of many of them that are one request.

    The server finds the order of contractions, keeps intermediate results in memory of
    its own and returns it when the last operation has ended.

    Besides what operations raise, programs raise:
        InvalidArgument: The notation is malformed, or does not fit the operands; the
            message has the place, and the line in question.
        ResourceExhausted: No order was found that keeps to the memory limit
            (`PATH_MEMORY_LIMIT`).
    """

    def run(
        self,
        text: str,
        operands: Mapping[str, TensorLike | Factor] | None = None,
        /,
        *,
        outputs: Outputs = None,
        name: str | None = None,
        dtype: npt.DTypeLike | None = None,
        inline: bool = False,
        optimize: Any = "auto",
        memory_limit: int | None = None,
        seed: int = 0,
        costs: str | None = None,
        compute_type: str | npt.DTypeLike | None = None,
        workspace_limit_bytes: int | None = None,
        deterministic: bool = False,
        selection: str | None = None,
        timeout: float | None = None,
        **named: TensorLike | Factor,
    ) -> ProgramOutcome:
        """Computes statements in index notation.

        >>> session.run("D[a,b] := 2*A[a,c]*B[c,b] - conj(C[b,a])", A=a, B=b, C=c)
        >>> session.run("D[a,b] += alpha*A[a,c]*B[c,b]", A=a, B=b, D=d, alpha=0.5)

        Each statement is on a line of its own or behind a `;`. `:=` makes a tensor, `=`
        stores into an operand, `+=` and `-=` add to one; `s = ...` without brackets
        makes a scalar where nothing is called `s`. A label that occurs twice in a
        term is summed, unless the output has it. Parentheses order products. Labels are
        names, with primes, or integers: with those a term is in NCON's form, and its
        output may be `D[:]`. `sqrt(A[a])`, `max(A[a], 0)`, `where(A[a] < B[a], A[a], 1)`,
        `A[a]^2`, `A[a]/B[a]` and the like are computed element by element. Of whole
        matrices, all that a statement assigns, there are `Q[a,k], R[k,b] := qr(A[a,b])`,
        `lq`, `svd(A[a,b]; cutoff=1e-10, rank=64)`, `eigh`, `cholesky`,
        `X[b,c] := solve(A[a,b], B[a,c])` and `inv`.

        Factors that no parentheses hold together are multiplied in the order that the
        server finds best, not from left to right.

        Args:
            text: The statements.
            operands: What names stand for that cannot be keywords: `A'`, `timeout`.
            outputs: Names of results that are wanted: one, several, or a mapping to
                the names that the tensors get on the server (None lets the server
                choose); by default what `:=` makes and no later statement reads. An
                empty list is refused where that is something.
            name: Name of the only result.
            dtype: Element type of the results; by default as NumPy promotes them.
            inline: Returns arrays, which come with the response; nothing is kept.
            optimize, memory_limit, seed, costs: As for `einsum`, but for paths:
                parentheses order statements.
            compute_type, workspace_limit_bytes, deterministic, selection, timeout: As
                in `Options`; `selection` is that of each operation's kernel.
            **named: What names stand for: RemoteTensors, arrays, and numbers, which do
                not count for the dtype of results; so do arrays without modes, unless
                they are written with brackets, `x[]`. What the program writes but does
                not make must be a RemoteTensor.

        Returns:
            The result if there is one, else a dict of them by name, in the order of
            `outputs`, or None without any.
        """
        settings = Settings(
            name=name,
            dtype=dtype,
            compute_type=compute_type,
            workspace_limit_bytes=workspace_limit_bytes,
            deterministic=deterministic,
            selection=selection,
            timeout=timeout,
        )
        values: dict[str, Any] = dict(operands or {})
        for key, value in named.items():
            if key in values:
                raise TypeError(f"operand {key} is given twice")
            values[key] = value
        path = path_options(optimize, memory_limit, seed, costs=costs)
        return self._run(text, values, outputs, inline, path, settings)

    def _run(
        self,
        text: str,
        values: Mapping[str, Any],
        outputs: Outputs,
        inline: bool,
        path: program_pb2.PathOptions,
        settings: Settings,
    ) -> ProgramOutcome:
        """Computes statements, as `run` says."""
        check_type("text", text, str, "statements, e.g. 'D[a,b] := A[a,c]*B[c,b]'")
        check_type("inline", inline, (bool, np.bool_), "a bool")
        statements = read_statements(text, values)
        kept = kept_names(outputs, settings, inline, statements.made, self._carries_out)
        is_told = outputs is not None or inline or settings.dtype is not None
        messages = [
            program_pb2.ProgramOutput(
                name=output,
                tensor_id=tensor_id,
                element_type=_element_type(settings),
                inline=bool(inline),
            )
            for output, tensor_id in kept.items()
            if is_told or settings.name
        ]
        found, held = self._found(values, statements, settings.timeout)
        call = ProgramCall(
            text,
            False,
            {output: tensor_id for output, tensor_id in kept.items() if tensor_id},
            tuple(
                each
                for key in statements.written
                if isinstance(each := values.get(key), TensorHandle)
            ),
            settings.timeout,
            settings.name,
            path.costs,
            tuple(kept),
        )
        source = program_pb2.ProgramSource(statements=text)
        spec = self._spec(source, found, messages, path, settings)
        return self._perform_program(spec, call, held)

    def ncon(
        self,
        operands: Sequence[TensorLike],
        labels: Sequence[Sequence[int]],
        *,
        order: Sequence[int] | None = None,
        output: Sequence[int] | None = None,
        inline: bool = False,
        memory_limit: int | None = None,
        costs: str | None = None,
        name: str | None = None,
        dtype: npt.DTypeLike | None = None,
        compute_type: str | npt.DTypeLike | None = None,
        workspace_limit_bytes: int | None = None,
        deterministic: bool = False,
        selection: str | None = None,
        timeout: float | None = None,
    ) -> ProgramOutcome:
        """Computes a product of tensors as NCON writes it.

        >>> session.ncon([a, b], [[-1, 1], [1, -2]])

        Args:
            operands: RemoteTensors and arrays.
            labels: For each operand one number a mode: positive ones occur twice and
                are summed, negative ones are the modes of the result.
            order: The positive labels in the order in which they are summed; by default
                ascending.
            output: The negative labels in the order of the result's modes; by default
                -1, -2 and so on.
            inline: Returns an array, which comes with the response; nothing is kept.
            memory_limit, costs: As for `einsum`; labels are the numbers.
            name, dtype, compute_type, workspace_limit_bytes, deterministic, selection,
                timeout: As for `run`.
        """
        settings = Settings(
            name=name,
            dtype=dtype,
            compute_type=compute_type,
            workspace_limit_bytes=workspace_limit_bytes,
            deterministic=deterministic,
            selection=selection,
            timeout=timeout,
        )
        check_type("operands", operands, (list, tuple), "a list of tensors")
        how = EinsumSettings(memory_limit=memory_limit, inline=inline, costs=costs)
        known = known_operands(operands)
        how.check(settings, known)
        source = ncon_source(labels, order, output)
        product: ProgramOutcome = self._product(source, "", known, how, settings)
        return product

    def _einsum_program(
        self, einsum: Einsum, how: EinsumSettings, settings: Settings
    ) -> Outcome:
        if settings.algorithm is not None:
            raise Unimplemented(
                f"'{einsum.subscripts}' takes several operations, so that algorithm does "
                "not apply",
                reason="SUBSCRIPTS_UNSUPPORTED",
            )
        settings.check_result()
        addend = addend_of(how.c, how.beta, {"out": settings.out})
        source = einsum_source(einsum.subscripts)
        is_scaled = factor_value("alpha", how.alpha) != 1
        after = None
        if addend is not None or settings.out is not None or is_scaled:
            after = After(how.alpha, how.beta, addend, settings)
            settings = dataclasses.replace(settings, out=None, name=None)
            how = dataclasses.replace(how, inline=False)
        product: Outcome = self._product(
            source, einsum.subscripts, einsum.operands, how, settings, after
        )
        return product

    def _product(
        self,
        source: program_pb2.ProgramSource,
        text: str,
        operands: tuple[Known, ...],
        how: EinsumSettings,
        settings: Settings,
        after: After | None = None,
    ) -> Any:
        """Computes one product of all operands."""
        known = _matched(operands, settings.dtype)
        found, held = self._found(dict(enumerate(known)), None, settings.timeout)
        output = program_pb2.ProgramOutput(
            tensor_id="" if settings.name is None else settings.name,
            element_type=_element_type(settings),
            inline=bool(how.inline),
        )
        if how.order == "F":
            output.order = tensor_pb2.ORDER_FIRST_MODE_FASTEST
        path = how.path(
            len(known), max((operand.dtype.itemsize for operand in known), default=1)
        )
        spec = self._spec(source, found, [output], path, settings)
        kept = {"": settings.name} if settings.name else {}
        call = ProgramCall(
            text, True, kept, (), settings.timeout, settings.name, how.costs or ""
        )
        if after is None:
            return self._perform_program(spec, call, held)
        return self._perform_after(spec, call, held, after)

    @abc.abstractmethod
    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: Held
    ) -> ProgramOutcome:
        """Sends a program.

        Args:
            spec: What the server is to do.
            call: What else there is to know.
            held: As for `_perform`.
        """

    @abc.abstractmethod
    def _perform_after(
        self,
        spec: program_pb2.ProgramSpec,
        call: ProgramCall,
        held: Held,
        after: After,
    ) -> Outcome:
        """Sends a program of one product, and then an operation on its result."""

    _constants: frozenset[Any] = frozenset()
    """Operands that are constant, by their names, or of a product by their places."""

    @property
    def _carries_out(self) -> bool:
        """Whether operands are written, and results get names."""
        return True

    def _add_to(self, result: TensorHandle, after: After) -> Outcome:
        """Computes `d = alpha * result + beta * addend`."""
        settings = after.settings
        options: Options = {
            "out": settings.out,
            "name": settings.name,
            "timeout": settings.timeout,
        }
        modes = range(result.ndim)
        if after.addend is None:
            return self.permute(result, modes, modes, alpha=after.alpha, **options)
        return self.elementwise(
            result,
            modes,
            after.addend,
            modes,
            modes,
            alpha=after.alpha,
            gamma=after.beta,
            **options,
        )

    def _found(
        self,
        values: Mapping[Any, TensorLike | Factor],
        statements: Statements | None,
        timeout: float | None,
    ) -> tuple[list[program_pb2.ProgramOperand], Held]:
        """Returns operands as they travel, and what must live meanwhile.

        Args:
            values: By their names, or of a product by their places.
            statements: None for a product, which has no scalars.
            timeout: Deadline in seconds; None for the default.

        Raises:
            InvalidArgument: One that is written is not on the server.
        """
        messages: dict[Any, program_pb2.ProgramOperand] = {}
        arrays: dict[Any, npt.ArrayLike] = {}
        held: Held = []
        for key, value in values.items():
            message = program_pb2.ProgramOperand()
            if statements is not None:
                message.name = key
            messages[key] = message
            message.constant = key in self._constants
            is_written = statements is not None and key in statements.written
            if isinstance(value, TensorHandle):
                check_session(self.link, f"operand {key}", value)
                value.put_in(message)
                held.append(value)
                continue
            if is_written and self._carries_out:
                raise not_remote(key, value)
            if statements is not None and is_number(value, key in statements.tensors):
                message.scalar.CopyFrom(scalar_message(key, value))
                message.constant = False  # Numbers are kept anyway.
            elif isinstance(value, TensorSpec):
                arrays[key] = value
            else:
                arrays[key] = array_of_operand(f"operand {key}", value)
        held += fill(messages, self._sources(arrays, timeout))
        return list(messages.values()), held

    def _spec(
        self,
        source: program_pb2.ProgramSource,
        operands: list[program_pb2.ProgramOperand],
        outputs: list[program_pb2.ProgramOutput],
        path: program_pb2.PathOptions,
        settings: Settings,
    ) -> program_pb2.ProgramSpec:
        return program_pb2.ProgramSpec(
            source=source,
            operands=operands,
            outputs=outputs,
            order=tensor_pb2.ORDER_LAST_MODE_FASTEST,
            path=path,
            compute_type=dtypes.compute_type_of(settings.compute_type),
            workspace_limit_bytes=settings.workspace_limit_bytes,
            deterministic=bool(settings.deterministic),
            selection=operators.selection(settings.selection),
        )


def kept_names(
    outputs: Outputs,
    settings: Settings,
    inline: bool,
    made: Iterable[str],
    carries_out: bool = True,
) -> dict[str, str]:
    """Returns names of results, and what they are called on the server, or "".

    Args:
        outputs, settings, inline: What the caller was told.
        made: Names of the results when it is told nothing.
        carries_out: Whether `name` is that of the result.

    Raises:
        InvalidArgument: A name is there twice (`OUTPUT_REPEATED`), there are none
            (`OUTPUT_MISSING`), or what was told does not go together.
    """
    by_default = dict.fromkeys(made, "")
    if outputs is None:
        kept = by_default
    elif isinstance(outputs, str):
        kept = {outputs: ""}
    elif isinstance(outputs, Mapping):
        kept = {key: value or "" for key, value in outputs.items()}
    else:
        kept = {}
        for key in outputs:
            check_type("outputs", key, str, "names")
            if key in kept:
                raise InvalidArgument(
                    f"outputs has {key!r} twice, wanted each name once",
                    reason="OUTPUT_REPEATED",
                )
            kept[key] = ""
    if not kept and by_default:
        raise InvalidArgument(
            f"outputs is empty, but the program makes {', '.join(by_default)}; "
            "wanted names of results, or None for these",
            reason="OUTPUT_MISSING",
        )
    for key, value in kept.items():
        check_type("outputs", key, str, "names")
        check_type("outputs", value, str, "names of tensors, or None")
    named = any(kept.values())
    if settings.name and carries_out:
        if len(kept) != 1 or named:
            raise InvalidArgument(
                f"name is {settings.name!r}, but there are "
                f"{', '.join(kept) or 'no results'}; wanted one result, or "
                "outputs={'D': 'name'}",
                reason="OUTPUT_AMBIGUOUS",
            )
        kept = dict.fromkeys(kept, settings.name)
    if inline and (named or settings.name):
        raise InvalidArgument(
            "inline is for results that are not kept, got it together with names",
            reason="OUTPUT_EXISTS",
        )
    return kept


def is_number(value: Any, has_brackets: bool = False) -> TypeGuard[Factor]:
    """Whether a value is a scalar of a program.

    Args:
        value: A number, or an array, which is one without modes and brackets.
        has_brackets: Whether it is written `x[]`.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return value.ndim == 0 and not has_brackets
    return isinstance(value, numbers.Number)


def not_remote(name: str, value: Any) -> InvalidArgument:
    """Returns what to raise for an array that a program writes."""
    return InvalidArgument(
        f"operand {name} is of type {type(value).__name__}, but the program writes it, "
        "and nothing would come back; wanted a RemoteTensor (or ':=', which makes one)",
        reason="OUTPUT_NOT_REMOTE",
    )


def _element_type(settings: Settings) -> Any:
    if settings.dtype is None:
        return tensor_pb2.ELEMENT_TYPE_UNSPECIFIED
    return dtypes.element_type_of(settings.dtype)


def _matched(operands: tuple[Known, ...], dtype: npt.DTypeLike | None) -> list[Known]:
    """Returns the operands of a product; arrays in the type that it is computed in.

    Else the server would compute products of narrow operands in their own type first.

    Args:
        operands: RemoteTensors, specs and arrays.
        dtype: That of the result; None for what NumPy makes of the operands.
    """
    types = [dtypes.wire_dtype(operand.dtype) for operand in operands]
    if not types:
        return []
    computed = np.result_type(*types)
    if dtype is not None:
        wanted = dtypes.wire_dtype(dtype)
        same_kind = np.can_cast(computed, wanted, "same_kind")
        computed = np.result_type(computed, wanted) if same_kind else wanted
    return [_converted(operand, dtypes.wire_dtype(computed)) for operand in operands]


def _converted(operand: Known, dtype: np.dtype) -> Known:
    own = dtypes.wire_dtype(operand.dtype)
    if isinstance(operand, TensorHandle) or own == dtype:
        return operand
    if isinstance(operand, TensorSpec):
        return TensorSpec(operand.shape, dtype)
    return operand.astype(dtype)

"""Operations as NumPy users write them, turned into requests."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord import _operators as operators
from tensord._arguments import check_type, factor_value
from tensord._handle import Handle, Held
from tensord._notation import PointingOut
from tensord._sending import Key, sources
from tensord._settings import Options, Settings
from tensord._stages import pad_widths
from tensord._subscripts import Modes, equation_subscripts, mode_labels, modes_in_one
from tensord._tensor_handle import Factor, TensorHandle, TensorLike, check_session
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2, tensor_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack

Outcome = TypeVar("Outcome")

_REQUESTS = {
    "permute": compute_pb2.PermuteRequest,
    "elementwise": compute_pb2.ElementwiseRequest,
    "reduce": compute_pb2.ReduceRequest,
    "contract": compute_pb2.ContractRequest,
    "solve": compute_pb2.SolveLinearRequest,
}


class Input(NamedTuple):
    """An operand as a method takes it."""

    tensor: TensorLike | None
    modes: Modes | None
    operator: str | None = None


class Operations(abc.ABC, Generic[Outcome]):
    """The operations; what becomes of a request is up to the subclass.

    Operands are RemoteTensors, views among them, anything that `numpy.asarray` takes,
    or that DLPack hands over. Modes are a string or a sequence of ints, one label for
    each mode. A factor of zero means that its operand is not read; it may be None then.

    All of them raise:
        InvalidArgument: Modes, extents, operators or factors do not fit together, or
            `out` overlaps an input.
        Unimplemented: No kernel takes these element types or this problem.
        NotFound: An operand or `out` was deleted.
        FailedPrecondition: An operand has no contents (`TENSOR_NOT_READY`).
        ResourceExhausted: The result does not fit the quota or the device.
        DeadlineExceeded: It took longer than `timeout`.
    """

    # A SessionLink; subclasses know of which kind it is.
    link: Any

    def permute(
        self,
        a: TensorLike | None,
        modes_a: Modes,
        modes_d: Modes | None = None,
        *,
        alpha: Factor = 1,
        op_a: str | None = None,
        pad_width: Any = None,
        pad_value: Factor = 0,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes `d = alpha * op_a(a)` with the modes in another order.

        >>> session.permute(a, "ijk", "kji", alpha=2.0)
        >>> session.permute(a, "ij", "ji", pad_width=((1, 1), (0, 2)), pad_value=7)

        Args:
            a: Input.
            modes_a: Its modes; those that only `d` has are broadcast along, which
                takes an `out` of their extents.
            modes_d: Modes of the result; by default those of `a`.
            alpha: Factor.
            op_a: Unary operator, e.g. "sqrt".
            pad_width: Elements of `d` around the result, for each of its modes, as
                `numpy.pad` takes them: `width`, `(before, after)`, or a pair for each
                mode; or a mapping from modes' positions to either.
            pad_value: What they become: neither `alpha` nor `op_a` applies.
            **options: See `Options`.
        """
        if modes_d is None:
            modes_d = modes_a
        padding = None
        if pad_width is None and factor_value("pad_value", pad_value) != 0:
            raise InvalidArgument(
                f"pad_value is {pad_value!r}, but there is no pad_width",
                reason="PADDING_MISSING",
            )
        if pad_width is not None:
            widths = pad_widths(len(mode_labels(modes_d, "modes_d")), pad_width)
            padding = compute_pb2.OutputPadding(
                before=[before for before, _ in widths],
                after=[after for _, after in widths],
                value=scalar_message("pad_value", pad_value),
            )
        return self._submit(
            "permute",
            {"a": Input(a, modes_a, op_a)},
            modes_d,
            {"alpha": alpha},
            options,
            {"padding": padding},
        )

    def elementwise(
        self,
        a: TensorLike | None,
        modes_a: Modes | None,
        c: TensorLike | None,
        modes_c: Modes | None,
        modes_d: Modes | None = None,
        *,
        op: str = "add",
        b: TensorLike | None = None,
        modes_b: Modes | None = None,
        op_ab: str = "add",
        alpha: Factor = 1,
        beta: Factor = 1,
        gamma: Factor = 1,
        op_a: str | None = None,
        op_b: str | None = None,
        op_c: str | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes `d = op(alpha * op_a(a), gamma * op_c(c))`, element by element.

        With `b`, it is `d = op(op_ab(alpha * op_a(a), beta * op_b(b)), gamma * op_c(c))`.

        >>> session.elementwise(a, "ij", c, "ji", "ij", op="max")
        >>> session.elementwise(a, "ij", c, "ij", "ij", b=scale, modes_b="j", op_ab="mul")
        >>> session.elementwise(a, "zj", indices, "i", "ij", op="take")

        Args:
            a, b, c: Inputs; a mode of the result that one lacks is broadcast.
            modes_a, modes_b, modes_c: Their modes.
            modes_d: Modes of the result; by default those of `a`, or else of `c`.
            op: Binary operator that takes `c`: "add", "mul", "max", "min", "div", "pow"; a
                comparison, "equal", "not_equal", "less", "less_equal", "greater" or
                "greater_equal", with results of bool; "where": `a` where `b`, of bools,
                is true, and `c` elsewhere; or "take": `a` at the indices in `c`, of the
                one mode that `a` has and the result lacks. With `b` those are in `b`, and
                `c` is taken where one is out of range, which is an error else. In errors
                they are b always.
            op_ab: Binary operator between `a` and `b`: one of the first six.
            alpha, beta, gamma: Factors of `a`, `b` and `c`.
            op_a, op_b, op_c: Unary operators, e.g. "sqrt".
            **options: See `Options`.
        """
        if modes_d is None:
            modes_d = _required_modes("c", modes_c) if modes_a is None else modes_a
        fields = {"op_abc": operators.binary_operator(op, "op")}
        has_b = b is not None or modes_b is not None
        if op == "take" and not has_b:
            has_b, b, modes_b, op_b, beta = True, c, modes_c, op_c, gamma
            c, modes_c, op_c, gamma = None, None, None, 0
        inputs = {"a": Input(a, modes_a, op_a), "c": Input(c, modes_c, op_c)}
        factors = {"alpha": alpha, "gamma": gamma}
        if has_b:
            inputs["b"] = Input(b, modes_b, op_b)
            factors["beta"] = beta
            fields["op_ab"] = operators.binary_operator(op_ab, "op_ab")
        return self._submit("elementwise", inputs, modes_d, factors, options, fields)

    def reduce(
        self,
        a: TensorLike | None,
        modes_a: Modes,
        modes_d: Modes,
        *,
        op: str = "add",
        along: str | int | None = None,
        sort: str | None = None,
        c: TensorLike | None = None,
        alpha: Factor = 1,
        beta: Factor = 0,
        op_a: str | None = None,
        op_c: str | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes `d = alpha * reduce(op_a(a)) + beta * op_c(c)`.

        >>> session.reduce(a, "ijk", "k", op="max")
        >>> session.reduce(a, "ij", "ij", along="j")  # numpy.cumsum(a, axis=1)
        >>> session.reduce(a, "ij", "ij", along="j", sort="ascending")  # numpy.argsort

        Args:
            a: Input.
            modes_a: Its modes; those that `d` lacks are reduced over.
            modes_d: Modes of the result, and of `c`.
            op: "add", "mul", "max" or "min".
            along: A mode; `d` has all modes then, and each of its elements is what `op`
                makes of those of `a` up to its own index along that mode.
            sort: "ascending" or "descending"; an element of `d`, of int64, is the index
                along that mode of the element that stands there when they are in order,
                and `op` counts for nothing. NaN is above all numbers, and equal elements
                stay as they are to each other. `a` is real.
            c: Addend; None means `out` when `beta` is not 0.
            alpha, beta: Factors.
            op_a, op_c: Unary operators, e.g. "abs".
            **options: See `Options`.
        """
        fields: dict[str, Any] = {"op": operators.binary_operator(op, "op")}
        if along is not None or sort is not None:
            fields["along"] = operators.along(along, sort)
        inputs = {"a": Input(a, modes_a, op_a)}
        addend = addend_of(c, beta, options)
        if addend is not None:
            inputs["c"] = Input(addend, modes_d, op_c)
        return self._submit(
            "reduce",
            inputs,
            modes_d,
            {"alpha": alpha, "beta": beta},
            options,
            fields,
        )

    def contract(
        self,
        a: TensorLike | None,
        modes_a: Modes,
        b: TensorLike | None,
        modes_b: Modes,
        modes_d: Modes | None = None,
        *,
        c: TensorLike | None = None,
        alpha: Factor = 1,
        beta: Factor = 0,
        op_a: str | None = None,
        op_b: str | None = None,
        op_c: str | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes `d = alpha * a * b + beta * c`, summed over the modes `d` lacks.

        >>> session.contract(a, "ik", b, "kj", "ij")

        Args:
            a, b: Inputs.
            modes_a, modes_b: Their modes.
            modes_d: Modes of the result, and of `c`; by default those that only one
                input has, first those of `a`.
            c: Addend; None means `out` when `beta` is not 0.
            alpha, beta: Factors.
            op_a, op_b, op_c: None or "conj".
            **options: See `Options`.
        """
        if modes_d is None:
            modes_d = modes_in_one(modes_a, modes_b)
        inputs = {"a": Input(a, modes_a, op_a), "b": Input(b, modes_b, op_b)}
        addend = addend_of(c, beta, options)
        if addend is not None:
            inputs["c"] = Input(addend, modes_d, op_c)
        return self._submit(
            "contract", inputs, modes_d, {"alpha": alpha, "beta": beta}, options
        )

    def solve(
        self,
        subscripts: str,
        a: TensorLike,
        b: TensorLike | None = None,
        *,
        structure: str = "general",
        unit_diagonal: bool = False,
        op_a: str | None = None,
        op_b: str | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes the `d` of linear equations `op_a(a) * d = op_b(b)`, or an inverse.

        >>> d = session.solve("ij,ik->jk", a, b)  # numpy.linalg.solve(a, b)
        >>> d = session.solve("nij->njk", a)  # numpy.linalg.inv(a)

        The product is summed over the columns of `a`. A label of all three is a batch
        mode, one of `a` and `b` alone counts rows, one of `a` and `d` alone columns, one
        of `b` and `d` alone right sides. Rows are numbered in the order of `b`'s labels,
        columns in that of `d`'s, the last one fastest; so `"ji,ik->jk"` has the same
        matrix transposed.

        Without `b`, `d` is the inverse: it lacks the labels of `a`'s rows, and has as
        many that `a` lacks. The last ones of `d` that `a` has, as many, are columns; the
        others that both have are batch modes, and then `d` has its own labels last.

        Args:
            subscripts: Labels of `a` and, if it is there, of `b`, `->`, and those of `d`.
            a: Square matrices: float32, float64, complex64 or complex128.
            b: Right sides, of the same dtype.
            structure: What is known of the matrices: "general"; "lower_triangular" or
                "upper_triangular", of which that alone is read; "hermitian" or
                "positive_definite", of which the lower triangle is read, and of its
                diagonal the real parts.
            unit_diagonal: Of a triangle: its diagonal is ones, and not read.
            op_a, op_b: None or "conj".
            **options: See `Options`; `compute_type` is that of the dtype.

        Raises:
            InvalidArgument: Matrices are singular (`MATRIX_SINGULAR`), hold NaN or are
                infinite (`MATRIX_NOT_FINITE`), are not square (`MATRIX_NOT_SQUARE`) or
                not positive definite (`MATRIX_NOT_POSITIVE_DEFINITE`); the subscripts
                are malformed (`SUBSCRIPTS_MALFORMED`).
            Unimplemented: The device has no kernel for it, as GPUs have not where
                cuSOLVER is missing (`NO_KERNEL`).
        """
        check_type("unit_diagonal", unit_diagonal, (bool, np.bool_), "a bool")
        with PointingOut(subscripts):
            labels_a, labels_b, labels_d = equation_subscripts(
                subscripts, has_b=b is not None
            )
        inputs = {"a": Input(a, labels_a, op_a)}
        if b is not None:
            inputs["b"] = Input(b, labels_b, op_b)
        elif op_b is not None:
            raise InvalidArgument(
                f"op_b is {op_b!r}, but there is no b", reason="INPUT_MISSING"
            )
        fields = {
            "structure": operators.matrix_structure(structure),
            "unit_diagonal": bool(unit_diagonal),
        }
        return self._submit("solve", inputs, labels_d, {}, options, fields)

    def expm(
        self,
        subscripts: str,
        a: TensorLike,
        *,
        structure: str = "general",
        unit_diagonal: bool = False,
        op_a: str | None = None,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes exponentials of square matrices, as `scipy.linalg.expm`.

        >>> d = session.expm("ij->ij", a)
        >>> d = session.expm("abcd->abef", a)  # rows ab, columns cd, and ef like them

        Columns are the labels of `a` that `d` lacks; `d` has as many of its own, in their
        order and as long. Rows are as many, the last ones of `a` that `d` has; the others
        that both have are batch modes. A matrix of two modes may have both labels in `d`,
        the first one of `a` being the row.

        Args:
            subscripts: Labels of `a`, `->`, and those of `d`.
            a: Square matrices: float32, float64, complex64 or complex128.
            structure, unit_diagonal: Which elements are read, as `solve` has it.
            op_a: None or "conj".
            **options: See `Options`; `compute_type` is that of the dtype.

        Raises:
            InvalidArgument: Matrices hold NaN or are infinite (`MATRIX_NOT_FINITE`) or
                are not square (`MATRIX_NOT_SQUARE`); `d` has other labels
                (`MODES_OF_EXPONENTIAL`); the subscripts are malformed
                (`SUBSCRIPTS_MALFORMED`).
            Unimplemented: As `solve`.
        """
        check_type("unit_diagonal", unit_diagonal, (bool, np.bool_), "a bool")
        with PointingOut(subscripts):
            labels_a, _, labels_d = equation_subscripts(subscripts, has_b=False)
        fields = {
            "structure": operators.matrix_structure(structure),
            "unit_diagonal": bool(unit_diagonal),
            "function": compute_pb2.MATRIX_FUNCTION_EXPONENTIAL,
        }
        inputs = {"a": Input(a, labels_a, op_a)}
        return self._submit("solve", inputs, labels_d, {}, options, fields)

    @abc.abstractmethod
    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> Outcome:
        """Sends a request.

        Args:
            operation: "permute", "elementwise", "reduce", "contract", "solve" or
                "execute_plan".
            request: The request of that operation.
            settings: What it was told besides.
            held: The tensors and plans that it names, but for `out`; they must live as
                long as the server needs them, and nobody else may hold temporary ones.
        """

    def _sources(
        self, arrays: Mapping[Key, npt.ArrayLike], timeout: float | None
    ) -> Iterator[tuple[Key, compute_pb2.InlineTensor | Handle]]:
        """Says how operands that are here get into a request.

        Args:
            arrays: What is on no server, by whatever tells them apart.
            timeout: Deadline in seconds; None for the default.

        Returns:
            For each of them a message, or a temporary tensor on the server.
        """
        return sources(self.link, arrays, timeout)

    def _output(self, settings: Settings, modes: Modes) -> compute_pb2.Output:
        """Says where the result goes."""
        settings.check_result()
        output = compute_pb2.Output(modes=mode_labels(modes, "modes_d"))
        if settings.out is not None:
            check_session(self.link, "out", settings.out)
            settings.out.put_in(output)
            return output
        output.tensor_id = settings.name or ""
        output.order = tensor_pb2.ORDER_LAST_MODE_FASTEST
        if settings.dtype is not None:
            output.element_type = dtypes.element_type_of(settings.dtype)
        return output

    def _submit(
        self,
        operation: str,
        inputs: Mapping[str, Input],
        modes_d: Modes,
        factors: Mapping[str, Factor],
        options: Options,
        fields: Mapping[str, Any] | None = None,
    ) -> Outcome:
        settings = Settings.of(options)
        scalars: dict[str, Any] = {
            name: scalar_message(name, factor) for name, factor in factors.items()
        }
        request = _REQUESTS[operation](
            session=self.link.name,
            d=self._output(settings, modes_d),
            compute_type=dtypes.compute_type_of(settings.compute_type),
            options=execution_options(settings),
            **(fields or {}),
            **scalars,
        )
        held = self._add_inputs(operation, request, inputs, settings.timeout)
        return self._perform(operation, request, settings, held)

    def _add_inputs(
        self,
        operation: str,
        request: Any,
        inputs: Mapping[str, Input],
        timeout: float | None,
    ) -> Held:
        """Puts operands into the request; returns what must live meanwhile."""
        arrays: dict[str, npt.ArrayLike] = {}
        held: Held = []
        for name, (tensor, modes, operator) in inputs.items():
            if tensor is None:
                continue
            operand = getattr(request, name)
            operand.modes.extend(
                mode_labels(_required_modes(name, modes), f"modes_{name}")
            )
            operand.unary_operator = operators.unary_operator(operator, f"op_{name}")
            if isinstance(tensor, TensorHandle):
                check_session(self.link, f"operand {name} of {operation}", tensor)
                tensor.put_in(operand)
                held.append(tensor)
            else:
                arrays[name] = tensor
        for name, source in self._sources(arrays, timeout):
            if isinstance(source, Handle):
                getattr(request, name).tensor = source.full_name
                held.append(source)
            else:
                getattr(request, name).inline.CopyFrom(source)
        return held


def execution_options(settings: Settings) -> compute_pb2.ExecutionOptions:
    """Returns how an operation is carried out, as it travels."""
    return compute_pb2.ExecutionOptions(
        workspace_limit_bytes=settings.workspace_limit_bytes,
        kernel=settings.algorithm or "",
        deterministic=settings.deterministic,
        selection=operators.selection(settings.selection),
    )


def addend_of(
    c: TensorLike | None, beta: Factor, options: Options
) -> TensorLike | None:
    """The operand that beta scales.

    Raises:
        InvalidArgument: `beta` is not 0, and there is none (`INPUT_MISSING`).
    """
    if c is not None or factor_value("beta", beta) == 0:
        return c
    out = options.get("out")
    if out is None:
        raise InvalidArgument(
            f"beta is {beta}, but there is neither c nor out to add, wanted one of them",
            reason="INPUT_MISSING",
        )
    return out


def _required_modes(name: str, modes: Modes | None) -> Modes:
    if modes is None:
        raise InvalidArgument(
            f"operand {name} has no modes, wanted modes_{name}", reason="MODES_MISSING"
        )
    return modes


def scalar_message(argument: str, factor: Factor) -> compute_pb2.Scalar:
    """Returns a factor as it travels.

    Args:
        argument: Its name, e.g. "alpha".
        factor: As `factor_value` takes it.
    """
    value = factor_value(argument, factor)
    return compute_pb2.Scalar(real=value.real, imaginary=value.imag)

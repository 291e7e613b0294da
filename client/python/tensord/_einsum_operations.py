"""Einstein sums, as operations and beyond."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np

from tensord import _dtypes as dtypes
from tensord._arguments import check_type
from tensord._arrays import array_of_operand
from tensord._notation import path_options
from tensord._operations import Operations, Outcome, addend_of
from tensord._products import PathStart
from tensord._settings import Options, Settings
from tensord._specs import TensorSpec
from tensord._subscripts import Einsum, Subscripts, read_einsum, single_operation
from tensord._tensor_handle import Factor, TensorHandle, TensorLike
from tensord.errors import InvalidArgument, Unimplemented
from tensord.v1 import program_pb2

if TYPE_CHECKING:
    from typing_extensions import Unpack

Known = Union[TensorHandle, TensorSpec, np.ndarray]
"""An operand whose shape and dtype are known here."""

_ORDERS = ("C", "F", "A", "K")
# Of alpha, beta, optimize, memory_limit, seed, order, casting, inline: the very same
# objects, as arrays do not compare.
_DEFAULTS = (1, 0, "auto", None, 0, "K", None, False)


@dataclasses.dataclass(frozen=True)
class EinsumSettings:
    """What `EinsumOperations.einsum` was told besides its operands and `Options`."""

    optimize: Any = "auto"
    memory_limit: int | None = None
    seed: int = 0
    order: str = "K"
    casting: str | None = None
    inline: bool = False
    alpha: Factor = 1
    beta: Factor = 0
    c: TensorLike | None = None
    costs: str | None = None
    start: PathStart | None = None

    def check(self, settings: Settings, operands: tuple[Known, ...]) -> None:
        """Refuses values that are wrong.

        Raises:
            InvalidArgument: They are.
            TypeError: They are of the wrong type, or `casting` forbids a conversion.
        """
        if self.order not in _ORDERS:
            raise InvalidArgument(
                f"order is {self.order!r}, wanted one of {', '.join(_ORDERS)}",
                reason="ORDER_UNKNOWN",
            )
        check_type("inline", self.inline, (bool, np.bool_), "a bool")
        if self.inline and (settings.out is not None or settings.name):
            raise InvalidArgument(
                "inline is for a result that is not kept, got it together with "
                "out or name",
                reason="OUTPUT_EXISTS",
            )
        self.path(len(operands))
        if settings.dtype is None:
            return
        rule = "same_kind" if self.casting is None else self.casting
        wanted = dtypes.wire_dtype(settings.dtype)
        for number, operand in enumerate(operands):
            if not dtypes.can_cast(operand.dtype, wanted, rule):
                raise TypeError(
                    f"operand {number} of {operand.dtype} cannot be cast to {wanted} by "
                    f"the rule {rule!r}"
                )

    def path(
        self, operand_count: int, element_bytes: int = 8
    ) -> program_pb2.PathOptions:
        """Returns how the order is found, as `path_options` does."""
        return path_options(
            self.optimize,
            self.memory_limit,
            self.seed,
            operand_count,
            element_bytes,
            self.costs,
            self.start,
        )

    def needs_program(self) -> bool:
        """Whether an operation cannot do it, whatever the operands are."""
        is_path = not (
            self.optimize is None
            or self.optimize is True
            or isinstance(self.optimize, (str, int, float, np.number))
        )
        is_path = is_path or self.costs is not None or self.start is not None
        return self.order == "F" or self.inline or is_path


class EinsumOperations(Operations[Outcome]):
    """The operations, and Einstein sums of what they can do."""

    def einsum(
        self,
        subscripts: Any,
        *operands: Any,
        c: TensorLike | None = None,
        alpha: Factor = 1,
        beta: Factor = 0,
        optimize: Any = "auto",
        memory_limit: int | None = None,
        seed: int = 0,
        costs: str | None = None,
        start: PathStart | None = None,
        order: Literal["C", "F", "A", "K"] = "K",
        casting: str | None = None,
        inline: bool = False,
        **options: Unpack[Options],
    ) -> Outcome:
        """Computes `d = alpha * einsum(subscripts, *operands) + beta * c`.

        Takes what `numpy.einsum` takes, in both of its forms.

        >>> session.einsum("ijk,kjl->il", a, b)
        >>> session.einsum("...ij,...jk,kl->...il", a, b, c, memory_limit=1 << 30)
        >>> session.einsum(a, [0, 1], b, [1, 2], [0, 2])

        Two operands that are contracted, or one that is transposed or summed, are one
        operation, if each label occurs once per operand and nothing is stretched.
        Everything else is a program, for which the server finds the order of
        contractions. With a program, `alpha`, `beta`, `c` and `out` take one operation
        more, and `algorithm` is refused. Pipelines take no programs.

        Args:
            subscripts: As in NumPy; without `->` the result has the labels that occur
                once, in alphabetical order. Letters may be those of any alphabet.
            *operands: RemoteTensors and arrays. Of different dtypes, arrays are
                converted here to the one that NumPy computes in, and tensors on the
                server, integers among them.
            c: Addend of the result's shape; None means `out` when `beta` is not 0.
            alpha, beta: Factors.
            optimize: How the order of contractions is found: "auto", "optimal",
                "greedy", "random-greedy" or "partition"; seconds to search for; False,
                from left to right; or the order itself, as `numpy.einsum_path` and
                opt_einsum write it.
            memory_limit: Most bytes of intermediate results at a time, to which the
                server keeps by computing in parts. NumPy's and opt_einsum's, also the
                one in `optimize=("greedy", limit)`, is in elements.
            seed: Of searches that are random.
            costs: What labels cost, as polynomials of a variable that is large. The
                order with the fewest multiplications is taken, whatever the extents
                are. `"i=>χ, j=>2*χ^2, k=>5"` means 1 for other labels, `"(i,j)"` χ for
                these, `"!(i,j)"` χ for others, `""` χ for all. Goes with `optimize`
                "auto", "optimal" or an order, whose cost is told then.
            start: What an earlier search found, from where this one goes on: a product
                that `explain` told of, with the labels that it slices, or an order as
                in `optimize`. What is found is no dearer, if that keeps to the memory
                limit. Not with an order in `optimize`; "greedy", "optimal" and `costs`
                make nothing of it.
            order: Of the result's modes in memory: "F" has the first one fastest.
            casting: With `dtype`, what conversions NumPy would allow, e.g. "safe".
                None allows those within a kind, and to a wider kind: "same_kind".
            inline: Returns an array, which comes with the response; nothing is kept.
            **options: See `Options`. With `dtype`, it is computed in that type or a
                more precise one.

        Raises:
            InvalidArgument: The subscripts are malformed or do not fit the operands;
                the message has the column.
            ResourceExhausted: No order was found that keeps to the memory limit
                (`PATH_MEMORY_LIMIT`).
            TypeError: `casting` forbids a conversion to `dtype`.
            Unimplemented: The element types do not go together.
        """
        if not options:
            given = alpha, beta, optimize, memory_limit, seed, order, casting, inline
            has_more = c is not None or costs is not None or start is not None
            if not has_more and all(map(operator.is_, given, _DEFAULTS)):
                quick = self._einsum_again(subscripts, operands)
                if quick is not None:
                    return quick
        settings = Settings.of(options)
        how = EinsumSettings(
            optimize,
            memory_limit,
            seed,
            order,
            casting,
            inline,
            alpha,
            beta,
            c,
            costs,
            start,
        )
        einsum = self._read_einsum(subscripts, operands, how, settings)
        single = None if how.needs_program() else _single(einsum, settings)
        if single is None:
            return self._einsum_program(einsum, how, settings)
        return self._einsum_operation(
            single, einsum.operands, c=c, alpha=alpha, beta=beta, **options
        )

    def _einsum_again(
        self, subscripts: Any, operands: tuple[Any, ...]
    ) -> Outcome | None:
        """Computes what is as it was before but for the names of operands.

        Returns:
            None where nobody remembers it.
        """
        return None

    def _read_einsum(
        self,
        subscripts: Any,
        operands: tuple[Any, ...],
        how: EinsumSettings,
        settings: Settings,
    ) -> Einsum:
        """Returns what `einsum` was given, its operands with shapes and dtypes."""
        einsum = read_einsum(subscripts, operands)
        known = known_operands(einsum.operands)
        how.check(settings, known)
        return Einsum(einsum.subscripts, known)

    def _einsum_program(
        self, einsum: Einsum, how: EinsumSettings, settings: Settings
    ) -> Outcome:
        """Computes what takes more than one operation."""
        raise Unimplemented(
            f"'{einsum.subscripts}' is not what one operation does, wanted two operands "
            "('ij,jk->ik') or the transposition or sum of one ('ijk->ki'), each label "
            "once per operand and its extents equal",
            reason="SUBSCRIPTS_UNSUPPORTED",
        )

    def _einsum_operation(
        self,
        subscripts: Subscripts,
        operands: tuple[TensorLike, ...],
        *,
        c: TensorLike | None,
        alpha: Factor,
        beta: Factor,
        **options: Unpack[Options],
    ) -> Outcome:
        inputs, output = subscripts
        if len(inputs) == 2:
            return self.contract(
                operands[0],
                inputs[0],
                operands[1],
                inputs[1],
                output,
                c=c,
                alpha=alpha,
                beta=beta,
                **options,
            )
        (modes_a,) = inputs
        if len(output) < len(modes_a):
            return self.reduce(
                operands[0], modes_a, output, c=c, alpha=alpha, beta=beta, **options
            )
        addend = addend_of(c, beta, options)
        if addend is None:
            return self.permute(operands[0], modes_a, output, alpha=alpha, **options)
        return self.elementwise(
            operands[0],
            modes_a,
            addend,
            output,
            output,
            alpha=alpha,
            gamma=beta,
            **options,
        )


def known_operands(operands: Iterable[Any]) -> tuple[Known, ...]:
    """Returns the operands of a product as what has a shape and a dtype.

    Raises:
        InvalidArgument: A tensor cannot have the dtype of one.
    """
    return tuple(
        (
            operand
            if isinstance(operand, (TensorHandle, TensorSpec))
            else array_of_operand(f"operand {number}", operand)
        )
        for number, operand in enumerate(operands)
    )


def _single(einsum: Einsum, settings: Settings) -> Subscripts | None:
    """Returns the subscripts if one operation can do it for these operands."""
    if not 1 <= len(einsum.operands) <= 2:
        return None
    if not settings.names_kernel():
        types = {dtypes.wire_dtype(operand.dtype) for operand in einsum.operands}
        if settings.dtype is not None:
            types.add(dtypes.wire_dtype(settings.dtype))
        if len(types) > 1:
            return None
    return single_operation(
        einsum.subscripts, [operand.shape for operand in einsum.operands]
    )

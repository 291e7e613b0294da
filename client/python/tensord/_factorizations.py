"""Operations with several results, as NumPy users write them."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Generic, Optional, TypeVar

from tensord import _operators as operators
from tensord._arguments import check_type
from tensord._handle import Held
from tensord._notation import PointingOut
from tensord._operations import (
    Input,
    Operations,
    Outcome,
    Settings,
    execution_options,
)
from tensord._subscripts import factor_subscripts
from tensord._tensor_handle import TensorHandle, TensorLike
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2

Pair = TypeVar("Pair")
Name = TypeVar("Name")

Names = tuple[Optional[str], Optional[str]]
"""Of two results."""


class Factorizations(Operations[Outcome], Generic[Outcome, Pair, Name]):
    """The operations, and those with two results."""

    def factorize(
        self,
        subscripts: str,
        a: TensorLike,
        *,
        method: str,
        out: tuple[TensorHandle | None, TensorHandle | None] | None = None,
        name: Name | None = None,
        algorithm: str | None = None,
        workspace_limit_bytes: int | None = None,
        deterministic: bool = False,
        selection: str | None = None,
        timeout: float | None = None,
    ) -> Pair:
        """Computes `q` and `r` of which `a` is the product.

        >>> q, r = session.factorize("abcd->abk,kcd", a, method="qr")

        The results share one label that `a` lacks, here `k`, over which their product is
        summed. A label of `a` that both have is a batch mode. Those that `q` alone has
        number the rows of a matrix, those of `r` alone its columns, the last one fastest.

        "qr" is thin: the shared mode has the extent of the matrix's shorter side. The
        columns of `q` are orthonormal; `r` is zero below its diagonal, which is real and
        not negative.

        Args:
            subscripts: Those of `a`, `->`, and those of `q` and of `r`.
            a: What is factorized: float32, float64, complex64 or complex128.
            method: "qr".
            out: Existing tensors that receive `q` and `r`, or None for new ones; those
                that are there are returned.
            name: Names of new results, each as in `Options`.
            algorithm, workspace_limit_bytes, deterministic, selection, timeout: As in
                `Options`.

        Raises:
            InvalidArgument: The subscripts are malformed (`SUBSCRIPTS_MALFORMED`), or the
                results do not share one label that `a` lacks (`INNER_MODE_COUNT`).
            Unimplemented: The device has no kernel for it, as GPUs have not
                (`NO_KERNEL`).
        """
        settings = Settings(
            algorithm=algorithm,
            workspace_limit_bytes=workspace_limit_bytes,
            deterministic=deterministic,
            selection=selection,
            timeout=timeout,
        )
        places = self._places(settings, out, name)
        with PointingOut(subscripts):
            modes = factor_subscripts(subscripts)
        request = compute_pb2.FactorizeRequest(
            session=self.link.name,
            q=self._output(places[0], modes.q),
            r=self._output(places[1], modes.r),
            method=operators.factorization_method(method),
            options=execution_options(settings),
        )
        held = self._add_inputs(request, {"a": Input(a, modes.a)}, timeout)
        return self._perform_factorization(request, places, held)

    def _places(
        self, settings: Settings, out: Any, name: Name | None
    ) -> tuple[Settings, Settings]:
        """Returns where `q` and `r` go, with what else is said of the operation."""
        outs = _pair("out", out, "a pair of RemoteTensors")
        names = self._names(name)
        q, r = (
            dataclasses.replace(settings, out=each, name=called)
            for each, called in zip(outs, names)
        )
        return q, r

    def _names(self, name: Name | None) -> Names:
        """Returns what `name` calls the results."""
        return _pair("name", name, "a pair of strings")

    @abc.abstractmethod
    def _perform_factorization(
        self,
        request: Any,
        places: tuple[Settings, ...],
        held: Held,
    ) -> Pair:
        """Sends a request.

        Args:
            request: What is asked for.
            places: What it was told besides: with where `q` goes, and with where `r`.
            held: As for `_perform`.
        """


def _pair(argument: str, values: Any, wanted: str) -> tuple[Any, Any]:
    """Returns two values; None stands for two that are None.

    Raises:
        InvalidArgument: They are not two (`OUTPUT_COUNT_MISMATCH`).
        TypeError: They are of another type.
    """
    if values is None:
        return None, None
    check_type(argument, values, (tuple, list), wanted)
    if len(values) != 2:
        raise InvalidArgument(
            f"{argument} has {len(values)} items, wanted {wanted}, for q and r",
            reason="OUTPUT_COUNT_MISMATCH",
        )
    return values[0], values[1]

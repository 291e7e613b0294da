"""Operations with several results, as NumPy users write them."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Optional, TypeVar

import numpy as np

from tensord import _operators as operators
from tensord._arguments import check_type
from tensord._handle import Held
from tensord._notation import PointingOut
from tensord._operations import Input, Operations, Outcome, execution_options
from tensord._settings import Settings
from tensord._subscripts import factor_subscripts
from tensord._tensor_handle import TensorHandle, TensorLike
from tensord.errors import InvalidArgument
from tensord.v1 import compute_pb2

Results = TypeVar("Results")
Name = TypeVar("Name")

Names = tuple[Optional[str], ...]
"""One for each result."""

# What the results of a method are called, and their fields in the request.
_RESULTS = {
    "qr": {"q": "q", "r": "r"},
    "lq": {"l": "q", "q": "r"},
    "svd": {"u": "q", "s": "values", "v": "r"},
    "eigh": {"w": "values", "v": "q"},
    "cholesky": {"l": "q"},
}
_ABSORBED = {"u": "q", "v": "r"}


class Factorizations(Operations[Outcome], Generic[Outcome, Results, Name]):
    """The operations, and those with several results."""

    def factorize(
        self,
        subscripts: str,
        a: TensorLike,
        *,
        method: str,
        rank: int | None = None,
        cutoff: float = 0,
        relative_cutoff: float = 0,
        discarded_squares: float = 0,
        relative_discarded_squares: float = 0,
        absorb: str | None = None,
        renormalize: bool = False,
        randomized: bool = False,
        oversampling: int | None = None,
        power_iterations: int | None = None,
        seed: int | None = None,
        out: tuple[TensorHandle | None, ...] | None = None,
        name: Name | None = None,
        algorithm: str | None = None,
        workspace_limit_bytes: int | None = None,
        deterministic: bool = False,
        selection: str | None = None,
        timeout: float | None = None,
    ) -> Results:
        """Computes factors of the matrices that `a` is.

        >>> q, r = session.factorize("abcd->abk,kcd", a, method="qr")
        >>> u, s, v = session.factorize("ij->ik,k,kj", a, method="svd", cutoff=1e-10)
        >>> u = u[:, :s.report.kept_extent]

        All results share one label that `a` lacks, here `k`, the inner mode.

        - "qr": `q` and `r`, `a = q @ r`. The columns of `q` are orthonormal; `r` is zero
          below its diagonal, which is real and not negative.
        - "lq": `l` and `q`, `a = l @ q`: QR of the transposed matrix, transposed.
        - "svd": `u`, `s` and `v`, `a = u @ diag(s) @ v`. The columns of `u` and the rows of
          `v` are orthonormal; `s` descends.
        - "eigh": `w` and `v`, of a Hermitian `a = v @ diag(w) @ v.H`; `w` ascends.
        - "cholesky": `l` alone, of a Hermitian, positive definite `a = l @ l.H`; `l` is zero
          above its diagonal, which is positive.

        The first three are thin: the inner mode has the extent of the matrix's shorter
        side. A label of `a` that both factors have is a batch mode. Those that the first
        factor alone has number the rows of a matrix, those of the last alone its columns,
        the last one fastest. Of Hermitian matrices the lower triangle is read; columns are
        numbered by the labels that the factor lacks, rows by as many, the last ones of the
        factor that `a` has.

        Args:
            subscripts: Those of `a`, `->`, and those of the results. "svd" has two, `u`
                and `v`, where `absorb` says what becomes of `s`.
            a: What is factorized: float32, float64, complex64 or complex128.
            method: One of the table.
            rank: Of "svd": the most values that are kept, and the most that the inner mode
                has.
            cutoff, relative_cutoff: Of "svd": values are kept that are above `cutoff` and
                above `relative_cutoff` times the largest; 0 cuts nothing.
            discarded_squares, relative_discarded_squares: Of "svd": the most that the
                squares of discarded values add up to, and the most as a part of the sum of
                all; 0 cuts nothing.
            absorb: Of "svd": "left", "right" or "both", for the factors that are
                multiplied by the values, "both" by their roots.
            renormalize: Of "svd": scale what is kept up to the norm of all values.
            randomized: Of "svd", with `rank`: the values may be those that a random sample
                finds, where that takes less, as it does where `rank` is far below both
                sides.
            oversampling: So many columns more than `rank` the sample has; None: 10.
            power_iterations: How often it is multiplied by the adjoint and the matrix: the
                more, the nearer it is where values decay slowly; None: 2.
            seed: Of its random numbers; equal ones are equal results. None: 0.
            out: Existing tensors that receive the results, or None for new ones; those
                that are there are returned. Their inner mode may be shorter than the
                matrix's shorter side, as by `rank`, and may not be longer than `rank`.
            name: Names of new results, each as in `Options`.
            algorithm, workspace_limit_bytes, deterministic, selection, timeout: As in
                `Options`.

        Returns:
            The results. Of "svd", `report.kept_extent` says how many values are kept, the
            most of any matrix and at least one; elements beyond are zero.

        Raises:
            InvalidArgument: The subscripts are malformed (`SUBSCRIPTS_MALFORMED`), or the
                results do not share one label that `a` lacks (`INNER_MODE_COUNT`); a
                matrix holds NaN or is infinite (`MATRIX_NOT_FINITE`), is not square
                (`MATRIX_NOT_SQUARE`) or not positive definite
                (`MATRIX_NOT_POSITIVE_DEFINITE`); a limit is none
                (`TRUNCATION_OUT_OF_RANGE`, `SAMPLING_OUT_OF_RANGE`), or not of "svd"
                (`TRUNCATION_WITHOUT_SVD`, `SAMPLING_WITHOUT_SVD`); a sample has no rank
                (`SAMPLING_WITHOUT_RANK`), or is not wanted (`SAMPLING_NOT_WANTED`).
            Unimplemented: The device has no kernel for it, as GPUs have not where
                cuSOLVER is missing (`NO_KERNEL`).
        """
        wanted = operators.factorization_method(method)
        results = _RESULTS[method.lower()]
        if absorb is not None and subscripts.count(",") == 1:
            results = _ABSORBED
        names = tuple(results)
        settings = Settings(
            algorithm=algorithm,
            workspace_limit_bytes=workspace_limit_bytes,
            deterministic=deterministic,
            selection=selection,
            timeout=timeout,
        )
        places = self._places(settings, out, name, names)
        with PointingOut(subscripts):
            modes = factor_subscripts(subscripts, names)
        request = compute_pb2.FactorizeRequest(
            session=self.link.name, method=wanted, options=execution_options(settings)
        )
        for place, field, labels in zip(places, results.values(), modes.results):
            getattr(request, field).CopyFrom(self._output(place, labels))
        limits = {
            "cutoff": cutoff,
            "relative_cutoff": relative_cutoff,
            "discarded_squares": discarded_squares,
            "relative_discarded_squares": relative_discarded_squares,
        }
        _check_truncation(method, a, rank, limits)
        truncation = compute_pb2.Truncation(
            rank=rank,
            absorb=operators.absorb(absorb),
            renormalize=renormalize,
            sampling=_sampling(randomized, oversampling, power_iterations, seed),
            **limits,
        )
        if truncation.ByteSize():
            request.truncation.CopyFrom(truncation)
        held = self._add_inputs("factorize", request, {"a": Input(a, modes.a)}, timeout)
        return self._perform_factorization(request, places, held)

    def _places(
        self,
        settings: Settings,
        out: Any,
        name: Name | None,
        results: Sequence[str],
    ) -> tuple[Settings, ...]:
        """Returns where each result goes, with what else is said of the operation."""
        outs = _each("out", out, "RemoteTensors", results)
        names = self._names(name, results)
        return tuple(
            dataclasses.replace(settings, out=each, name=called)
            for each, called in zip(outs, names)
        )

    def _names(self, name: Name | None, results: Sequence[str]) -> Names:
        """Returns what `name` calls the results."""
        return _each("name", name, "strings", results)

    @abc.abstractmethod
    def _perform_factorization(
        self,
        request: Any,
        places: tuple[Settings, ...],
        held: Held,
    ) -> Results:
        """Sends a request.

        Args:
            request: What is asked for.
            places: What it was told besides: with where each result goes.
            held: As for `_perform`.
        """


def _check_truncation(
    method: str, a: Any, rank: int | None, limits: Mapping[str, float]
) -> None:
    """Refuses what says nothing of how much is kept.

    Raises:
        InvalidArgument: A number is below its least (`TRUNCATION_OUT_OF_RANGE`).
    """
    wrong = [
        f"{name} is {limit}, wanted a finite number of 0 and more"
        for name, limit in limits.items()
        if not 0 <= limit < math.inf
    ]
    if rank is not None and rank < 1:
        wrong = [f"rank is {rank}, wanted None or 1 and more"]
    if wrong:
        raise InvalidArgument(
            f"{method} of a with shape {np.shape(a)}: {wrong[0]}",
            reason="TRUNCATION_OUT_OF_RANGE",
        )


def _sampling(
    randomized: bool,
    oversampling: int | None,
    power_iterations: int | None,
    seed: int | None,
) -> compute_pb2.Sampling | None:
    """Returns the random sample that is wanted, if one is.

    Raises:
        InvalidArgument: It is said what it is like, but not that one is wanted
            (`SAMPLING_NOT_WANTED`); a number has more than 64 bits
            (`SAMPLING_OUT_OF_RANGE`).
        TypeError: A number is none.
    """
    check_type("randomized", randomized, (bool, np.bool_), "a bool")
    numbers = {
        "oversampling": oversampling,
        "power_iterations": power_iterations,
        "seed": seed,
    }
    for name, number in numbers.items():
        if number is None:
            continue
        if isinstance(number, (bool, np.bool_)):
            raise TypeError(f"{name} is {number}, wanted an int or None")
        check_type(name, number, (int, np.integer), "an int or None")
        if not -(2**63) <= number < 2**63:
            raise InvalidArgument(
                f"{name} is {number}, wanted -2**63 to 2**63 - 1",
                reason="SAMPLING_OUT_OF_RANGE",
            )
        if not randomized:
            raise InvalidArgument(
                f"{name} is {number}, wanted randomized=True with it",
                reason="SAMPLING_NOT_WANTED",
            )
    return compute_pb2.Sampling(**numbers) if randomized else None


def _each(
    argument: str, values: Any, wanted: str, results: Sequence[str]
) -> tuple[Any, ...]:
    """Returns a value for each result; None stands for as many.

    Raises:
        InvalidArgument: They are not as many (`OUTPUT_COUNT_MISMATCH`).
        TypeError: They are of another type.
    """
    if values is None:
        return (None,) * len(results)
    check_type(argument, values, (tuple, list), f"a tuple of {wanted}")
    if len(values) != len(results):
        raise InvalidArgument(
            f"{argument} has {len(values)} items, wanted {len(results)} {wanted}, for "
            + " and ".join(results),
            reason="OUTPUT_COUNT_MISMATCH",
        )
    return tuple(values)

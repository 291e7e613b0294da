"""What sessions are, whether their calls wait or are awaited."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from tensord._factorizations import Factorizations, Names, Results
from tensord._handle import Handle, Held
from tensord._operations import Outcome
from tensord._program_operations import (
    ProgramCall,
    ProgramOperations,
    ProgramOutcome,
)
from tensord._programs import execute_program
from tensord._session_link import Question
from tensord._settings import Settings
from tensord._shortcuts import Shortcuts
from tensord._specs import TensorSpec
from tensord._tensor_handle import TensorHandle
from tensord.reports import ServerInfo
from tensord.v1 import compute_pb2, program_pb2, tensor_pb2


class SessionBase(
    ProgramOperations[Outcome, ProgramOutcome], Factorizations[Outcome, Results, Names]
):
    """A session with a server, and the operations that it runs.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
        link: What ties it, and all that it hands out, to the server.
    """

    _tensor_class: ClassVar[type[TensorHandle]]
    """Of results that stay on the server."""

    _awaits: ClassVar[bool] = True
    """Whether somebody waits for the response of each operation."""

    def __init__(self, link: Any) -> None:
        """Use `connect`."""
        self.name: str = link.name
        self.device: str = link.device
        self.link = link
        link.memory.session = weakref.ref(self)
        self._finalizer = weakref.finalize(self, link.keeper.stop)
        self._shortcuts = Shortcuts(self._tensor_class, link, awaits=self._awaits)

    def info(self) -> ServerInfo:
        """Returns the server's version, devices and limits, as of the start."""
        info: ServerInfo = self.link.info
        return info

    @property
    def transport(self) -> str:
        """How large arrays get to the server and back: "shm" or "grpc"."""
        return "shm" if self.link.memory.is_used() else "grpc"

    def empty(
        self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = "float64"
    ) -> np.ndarray:
        """Returns an array in memory that this program shares with the server.

        >>> a = session.empty((1000, 1000), "float32")
        >>> a[...] = 1
        >>> session.einsum("ij,jk->ik", a, a, out=session.empty((1000, 1000), "float32"))

        A CPU moves no bytes of it: as an operand, the server reads it where it is, and
        as `out` it writes it there. So do parts of it with strides, `a[:, 1:]`. A GPU
        copies what an operation needs, each time. An operation reads the array as it is
        when it runs; what is written to it meanwhile makes the result undefined. Its
        memory counts in the session's quota as long as it lives, and stays when the
        session ends.

        Args:
            shape: Extents.
            dtype: NumPy's dtype.

        Returns:
            Undefined elements, in C order.

        Raises:
            FailedPrecondition: There is no such memory with this server; says which
                precondition fails.
            ResourceExhausted: It does not fit the quota, or the system.
        """
        array: np.ndarray = self.link.memory.empty(TensorSpec(shape, dtype))
        return array

    def tensor_in_array(
        self, array: np.ndarray, held: Handle, message: tensor_pb2.Tensor
    ) -> TensorHandle:
        """Returns the tensor that an array of `empty` is, as long as that lives."""
        tensor = self._tensor_class(self, message, owned=False)
        tensor.keep(array, held)
        return tensor

    def _stop(self) -> None:
        """Has the session closed soon."""
        self._finalizer.detach()
        self.link.keeper.stop()

    def _perform(
        self, operation: str, request: Any, settings: Settings, held: Held
    ) -> Outcome:
        def answer(response: Any) -> TensorHandle:
            return self._tensor(response.result, settings)

        return cast("Outcome", self._compute(request, settings, answer, held))

    def _perform_factorization(
        self,
        request: Any,
        places: tuple[Settings, ...],
        held: Held,
    ) -> Results:
        def answer(response: Any) -> tuple[TensorHandle, ...]:
            results = (response.result, *response.result.others)
            tensors = tuple(map(self._tensor, results, places))
            for tensor in tensors:
                tensor.report = tensors[0].report  # That of the operation.
            return tensors

        return cast("Results", self._compute(request, places[0], answer, held))

    def _compute(
        self,
        request: Any,
        settings: Settings,
        answer: Callable[[Any], Any],
        held: Held,
    ) -> Any:
        """Returns the answer to a request, or what is to be awaited for it."""
        question = Question(
            "compute",
            request.DESCRIPTOR.name.removesuffix("Request"),
            request,
            settings.timeout,
            answer,
            held,
            allocates=True,
        )
        return self.link.ask(question)

    def _tensor(self, result: compute_pb2.Result, settings: Settings) -> TensorHandle:
        owned = not settings.name
        return self._tensor_class.of_result(self, result, settings.out, owned=owned)

    def _perform_program(
        self, spec: program_pb2.ProgramSpec, call: ProgramCall, held: Held
    ) -> Any:
        request = program_pb2.ExecuteProgramRequest(session=self.name, spec=spec)
        return execute_program(self, self._tensor_class, request, call, held)

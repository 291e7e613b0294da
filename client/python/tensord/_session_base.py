"""What sessions are, whether their calls wait or are awaited."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar, cast

from tensord._factorizations import Factorizations, Names, Pair
from tensord._handle import Held
from tensord._operations import Outcome, Settings
from tensord._program_operations import (
    ProgramCall,
    ProgramOperations,
    ProgramOutcome,
)
from tensord._programs import execute_program
from tensord._session_link import Question
from tensord._tensor_handle import TensorHandle
from tensord.reports import ServerInfo
from tensord.v1 import compute_pb2, program_pb2


class SessionBase(
    ProgramOperations[Outcome, ProgramOutcome], Factorizations[Outcome, Pair, Names]
):
    """A session with a server, and the operations that it runs.

    Attributes:
        name: Its name on the wire, `sessions/{session}`.
        device: The device that its operations run on.
        link: What ties it, and all that it hands out, to the server.
    """

    _tensor_class: ClassVar[type[TensorHandle]]
    """Of results that stay on the server."""

    def __init__(self, link: Any) -> None:
        """Use `connect`."""
        self.name: str = link.name
        self.device: str = link.device
        self.link = link
        self._finalizer = weakref.finalize(self, link.keeper.stop)

    def info(self) -> ServerInfo:
        """Returns the server's version, devices and limits, as of the start."""
        info: ServerInfo = self.link.info
        return info

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
    ) -> Pair:
        def answer(response: Any) -> tuple[TensorHandle, ...]:
            results = (response.result, *response.result.others)
            tensors = tuple(map(self._tensor, results, places))
            for tensor in tensors:
                tensor.report = tensors[0].report  # That of the operation.
            return tensors

        return cast("Pair", self._compute(request, places[0], answer, held))

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

"""Programs that the server has prepared, for asyncio."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensord._arguments import check_timeout
from tensord._operations import Settings
from tensord._program_reports import ProgramInfo
from tensord._programs import ProgramHandle
from tensord.reports import from_message
from tensord.v1 import program_pb2

if TYPE_CHECKING:
    from tensord.aio._session import Session
    from tensord._operations import Factor, TensorLike
    from tensord._program_operations import Outputs


class Program(ProgramHandle):
    """A prepared program; `ProgramHandle` says what is known of it here.

    >>> program = await session.program("D[a,b] := A[a,c]*B[c,b]", A=a, B=b)
    >>> d = await program(A=a, B=b)
    """

    session: Session

    async def __call__(
        self,
        *operands: TensorLike | Factor | Mapping[str, Any],
        outputs: Outputs = None,
        name: str | None = None,
        inline: bool = False,
        timeout: float | None = None,
        **named: TensorLike | Factor,
    ) -> Any:
        """Runs it, as `tensord.Program` does."""
        settings = Settings(name=name, timeout=timeout)
        request, call, held = self._execution(
            operands, named, outputs, inline, settings
        )
        return await self.session._execute_program(request, call, held)

    async def describe(self, timeout: float | None = None) -> ProgramInfo:
        """Returns what it is as of now, with its operations and paths."""
        check_timeout(timeout)
        request = program_pb2.DescribeProgramRequest(program=self.full_name)
        response = await self.session._call(
            "program", "DescribeProgram", request, timeout
        )
        return from_message(ProgramInfo, response.program)

    async def delete(self, timeout: float | None = None) -> None:
        """Deletes the program; executions that are under way still end."""
        check_timeout(timeout)
        if self._finalizer is not None:
            self._finalizer.detach()
        request = program_pb2.DeleteProgramRequest(program=self.full_name)
        await self.session._call("program", "DeleteProgram", request, timeout)

    async def __aenter__(self) -> Program:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        await self.delete()

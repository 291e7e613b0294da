"""Programs that the server has prepared, for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

from tensord._messages import from_message
from tensord._program_operations import Outputs
from tensord._program_reports import ProgramInfo
from tensord._programs import ProgramHandle, execute_program
from tensord._settings import Settings
from tensord._tensor_handle import Factor, TensorLike, TensorSession
from tensord.aio._session_link import AwaitedHandle, AwaitedLink
from tensord.aio._tensor import RemoteTensor


class Program(ProgramHandle, AwaitedHandle):
    """A prepared program; `ProgramHandle` says what is known of it here.

    >>> program = await session.program("D[a,b] := A[a,c]*B[c,b]", A=a, B=b)
    >>> d = await program(A=a, B=b)
    """

    session: TensorSession[Awaitable[RemoteTensor], AwaitedLink]
    link: AwaitedLink

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
        return await execute_program(self.session, RemoteTensor, request, call, held)

    async def describe(self, timeout: float | None = None) -> ProgramInfo:
        """Returns what it is as of now, with its operations and paths."""
        message = await self.link.describe(self.full_name, timeout)
        return from_message(ProgramInfo, message)

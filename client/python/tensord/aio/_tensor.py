"""A tensor on the server, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import check_timeout
from tensord._arrays import array_of, flat_bytes
from tensord._tensor_handle import TensorHandle, TensorSession, state_of
from tensord.aio._session_link import AwaitedHandle, AwaitedLink
from tensord.errors import InvalidArgument
from tensord.v1 import tensor_pb2


class RemoteTensor(TensorHandle, AwaitedHandle):
    """A tensor on the server; `TensorHandle` says what is known of it here.

    It leaves the server with its last reference, unless it was given a name.
    """

    session: TensorSession[Awaitable[RemoteTensor], AwaitedLink]
    link: AwaitedLink

    async def numpy(self, timeout: float | None = None) -> np.ndarray:
        """As `tensord.RemoteTensor.numpy`."""
        check_timeout(timeout)
        known = self.known_contents()
        if known is not None:
            return known
        if self.is_view or self._is_dense():
            fetch = self.link.memory.download
            spec = self._dense_spec()
            shared = await asyncio.to_thread(fetch, self.full_name, spec, timeout)
            if shared is not None:
                return shared
        if self.is_view and not self._is_dense():
            modes = range(self.ndim)
            packed = await self.session.permute(self, modes, modes, timeout=timeout)
            return await packed.numpy(timeout)
        array, data = self._allocate()
        download = self.link.transfers.download
        await asyncio.to_thread(download, self.full_name, data, timeout)
        return array

    async def write(self, array: npt.ArrayLike, timeout: float | None = None) -> None:
        """As `tensord.RemoteTensor.write`; views take `out=` of an operation."""
        check_timeout(timeout)
        source = array_of(array)
        fits = source.shape == self.shape and not self.is_view and self._is_packed()
        if not fits or dtypes.wire_dtype(source.dtype) != self.dtype:
            raise InvalidArgument(
                f"got an array of {source.shape} {source.dtype} for tensor {self.name}, "
                f"wanted {self.shape} {self.dtype}, and no view",
                reason="TENSOR_MISMATCH",
            )
        empty = await self.state() == "empty"
        data = flat_bytes(source)
        await self.link.fill(self.full_name, data, timeout, empty=empty)

    async def state(self) -> str:
        """State on the server as of now, as `tensord.RemoteTensor.state`."""
        return state_of(await self.link.describe(self.full_name))

    async def share(self, *tenants: str, timeout: float | None = None) -> str:
        """Lets tenants read the tensor, as `tensord.RemoteTensor.share`."""
        request = tensor_pb2.ShareTensorRequest(tensor=self.full_name, tenants=tenants)
        method = self.link.stubs.tensor.ShareTensor
        return str((await self.link.call(method, request, timeout)).share)

    async def unshare(
        self, *tenants: str, timeout: float | None = None
    ) -> tuple[str, ...]:
        """Tenants may no longer read it, as `tensord.RemoteTensor.unshare`."""
        request = tensor_pb2.UnshareTensorRequest(
            tensor=self.full_name, tenants=tenants
        )
        method = self.link.stubs.tensor.UnshareTensor
        return tuple((await self.link.call(method, request, timeout)).tenants)

    async def item(self) -> Any:
        """Downloads the only element.

        Raises:
            InvalidArgument: There is not exactly one.
        """
        self._check_single()
        return (await self.numpy()).item()

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        raise TypeError(
            "got a tensor of tensord.aio, whose elements are awaited: "
            "`await tensor.numpy()`"
        )

"""A tensor on the server, for asyncio."""

from __future__ import annotations

import asyncio
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tensord import _dtypes as dtypes
from tensord._arguments import check_timeout
from tensord._arrays import array_of, flat_bytes
from tensord.errors import InvalidArgument
from tensord._tensor_handle import TensorHandle
from tensord.v1 import tensor_pb2

if TYPE_CHECKING:
    from tensord.aio._session import Session


class RemoteTensor(TensorHandle):
    """A tensor on the server; `TensorHandle` says what is known of it here.

    It leaves the server with its last reference, unless it was given a name.
    """

    session: Session

    async def numpy(self, timeout: float | None = None) -> np.ndarray:
        """As `tensord.RemoteTensor.numpy`."""
        check_timeout(timeout)
        if self.is_view and not self._is_dense():
            modes = range(self.ndim)
            packed = await self.session.permute(self, modes, modes, timeout=timeout)
            return await packed.numpy(timeout)
        array, data = self._allocate()
        download = self.session._transfers.download
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
        await self.session._send(self.full_name, flat_bytes(source), timeout, empty)

    async def state(self) -> str:
        """State on the server as of now, as `tensord.RemoteTensor.state`."""
        message = await self.session._describe_tensor(self.full_name)
        name = tensor_pb2.TensorState.Name(message.state)
        return name.removeprefix("TENSOR_STATE_").lower()

    async def item(self) -> Any:
        """Downloads the only element.

        Raises:
            InvalidArgument: There is not exactly one.
        """
        if self.size != 1:
            raise InvalidArgument(
                f"tensor {self.name} of shape {self.shape} has {self.size} elements, "
                "wanted one",
                reason="TENSOR_NOT_SCALAR",
            )
        return (await self.numpy()).item()

    async def delete(self, timeout: float | None = None) -> None:
        """Deletes the tensor; operations that use it still end.

        Raises:
            NotFound: It was deleted before.
        """
        check_timeout(timeout)
        if self._finalizer is not None:
            self._finalizer.detach()
        request = tensor_pb2.DeleteTensorRequest(tensor=self.full_name)
        await self.session._call("tensor", "DeleteTensor", request, timeout)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray:
        raise TypeError(
            "got a tensor of tensord.aio, whose elements are awaited: "
            "`await tensor.numpy()`"
        )

    async def __aenter__(self) -> RemoteTensor:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        await self.delete()

"""Exceptions, one for each status with which a call can end.

Every exception is a `tensord.Error` and, where Python has a natural counterpart,
also that: `InvalidArgument` is a `ValueError`, `NotFound` a `KeyError`, and so on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import grpc
from google.protobuf.message import DecodeError

from tensord.v1 import error_pb2

_DETAIL_KEY = "tensord-error-bin"


class Quota(NamedTuple):
    """A quota of the caller's tenant that does not hold what a call needs."""

    name: str
    limit: int
    used: int


class Error(Exception):
    """A call failed.

    Attributes:
        code: Status of the call.
        message: What failed, where, what was got and what was wanted.
        reason: The cause for programs, e.g. `MODE_EXTENT_MISMATCH`; may be empty.
        cutensor_status: What cuTENSOR would have returned, e.g. `INVALID_VALUE`;
            empty when the server did not say.
        request_id: The call's id in the server's log; empty when no server answered.
        quota: The tenant's quota that was used up; `None` when it was not that.
        retry_after: Seconds after which the same call may do better; `None` when
            waiting does not help, or nobody knows.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        cutensor_status: str = "",
        request_id: str = "",
        quota: Quota | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.cutensor_status = cutensor_status
        self.request_id = request_id
        self.quota = quota
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message


class Cancelled(Error):
    """The call was cancelled."""

    code = grpc.StatusCode.CANCELLED


class InvalidArgument(Error, ValueError):
    """The request is wrong in itself."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class InvalidIndex(InvalidArgument, IndexError):
    """What stands between brackets, or names a mode, does not fit the tensor."""


class DeadlineExceeded(Error, TimeoutError):
    """The call took longer than its `timeout`."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class NotFound(Error, KeyError):
    """The server knows no session, tensor or plan of that name."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(Error):
    """The name is taken."""

    code = grpc.StatusCode.ALREADY_EXISTS


class PermissionDenied(Error, PermissionError):
    """The caller may not do this."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unauthenticated(Error, PermissionError):
    """The server does not know the caller."""

    code = grpc.StatusCode.UNAUTHENTICATED


class ResourceExhausted(Error, MemoryError):
    """A quota, the device's memory or a queue is full; free something or retry."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPrecondition(Error):
    """The right request at the wrong moment, e.g. on a tensor without contents."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Aborted(Error):
    """Something else intervened; start over."""

    code = grpc.StatusCode.ABORTED


class OutOfRange(Error, ValueError):
    """A place beyond the end was asked for."""

    code = grpc.StatusCode.OUT_OF_RANGE


class Unimplemented(Error, NotImplementedError):
    """The request makes sense, but nothing here can do it."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Internal(Error):
    """A fault of the server or of the transport."""

    code = grpc.StatusCode.INTERNAL


class Unavailable(Error, ConnectionError):
    """No server can be reached, or it is shutting down."""

    code = grpc.StatusCode.UNAVAILABLE


class DataLoss(Error):
    """Data arrived damaged, time and again."""

    code = grpc.StatusCode.DATA_LOSS


_BY_CODE: dict[grpc.StatusCode, type[Error]] = {
    cls.code: cls for cls in Error.__subclasses__()
}
_BY_NUMBER: dict[int, type[Error]] = {
    code.value[0]: cls for code, cls in _BY_CODE.items()
}

_REASONS_OF_INVALID_INDEX = frozenset(
    {"ELLIPSIS_REPEATED", "INDEX_OUT_OF_RANGE", "TOO_MANY_INDICES"}
)

UNREACHABLE = "UNREACHABLE"
"""Reason of `Unavailable` when no server answered."""

_REASONS_OF_TRANSPORT: dict[grpc.StatusCode, str] = {
    grpc.StatusCode.CANCELLED: "CANCELLED",
    grpc.StatusCode.DEADLINE_EXCEEDED: "DEADLINE_EXCEEDED",
    grpc.StatusCode.UNAVAILABLE: UNREACHABLE,
}
"""Reasons of the errors that gRPC makes itself."""


def from_error(error: error_pb2.Error) -> Error:
    """Returns the exception that says what `error` says."""
    cls = _class_for(_BY_NUMBER.get(error.code, Error), error.detail.reason)
    return cls(error.message, reason=error.detail.reason, **_told_by(error.detail))


def from_code(code: int, message: str, reason: str) -> Error:
    """Returns the exception of a status code, by its number."""
    return _class_for(_BY_NUMBER.get(code, Error), reason)(message, reason=reason)


def to_error(exception: Exception) -> error_pb2.Error:
    """Returns the message of an exception; one that is no `Error` becomes `Internal`."""
    if not isinstance(exception, Error):
        exception = Internal(repr(exception))
    return error_pb2.Error(
        code=exception.code.value[0],
        message=exception.message,
        detail=error_pb2.ErrorDetail(
            reason=exception.reason,
            cutensor_status=exception.cutensor_status,
            request_id=exception.request_id,
        ),
    )


def from_outcome(number: int, details: str, trailing_metadata: Any) -> Error:
    """Returns the exception that says how a call ended.

    Args:
        number: Its status.
        details: What the server or gRPC said; may be empty.
        trailing_metadata: Pairs; None for none.
    """
    detail = error_pb2.ErrorDetail()
    for key, value in trailing_metadata or ():
        if key == _DETAIL_KEY:
            try:
                detail.ParseFromString(value)
            except DecodeError:
                detail.Clear()
    cls = _class_for(_BY_NUMBER.get(number, Error), detail.reason)
    return cls(
        details or cls.code.name,
        reason=detail.reason or _REASONS_OF_TRANSPORT.get(cls.code, ""),
        **_told_by(detail),
    )


def from_rpc_error(error: Any) -> Error:
    """Returns the exception that says what `error` says.

    Args:
        error: The `grpc.RpcError` that gRPC raised; it is the failed call as well.
    """
    number = error.code().value[0]
    return from_outcome(number, error.details() or "", error.trailing_metadata())


def _told_by(detail: error_pb2.ErrorDetail) -> dict[str, Any]:
    """What an exception has of the details, but for the reason."""
    quota, retry_after = None, None
    if detail.HasField("quota"):
        quota = Quota(detail.quota.name, detail.quota.limit, detail.quota.used)
    if detail.HasField("retry_after"):
        retry_after = detail.retry_after.ToTimedelta().total_seconds()
    return {
        "cutensor_status": detail.cutensor_status,
        "request_id": detail.request_id,
        "quota": quota,
        "retry_after": retry_after,
    }


def _class_for(cls: type[Error], reason: str) -> type[Error]:
    """The class of a status, or of what the reason says more exactly."""
    if cls is InvalidArgument and reason in _REASONS_OF_INVALID_INDEX:
        return InvalidIndex
    return cls

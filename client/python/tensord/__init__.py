"""Client of the tensord tensor-compute server.

    import numpy as np, tensord

    with tensord.connect("localhost:8470") as session:
        a = session.upload(np.random.rand(500, 40, 60))
        b = session.upload(np.random.rand(60, 40, 300))
        c = session.einsum("ijk,kjl->il", a, b)
        print(c.numpy().sum())

`tensord.array` is the Python array API on tensors of a server, and what array libraries
find. `tensord.aio` has the same as here for asyncio, `tensord.transforms` what views are made of,
`tensord.reports` what a server tells about itself, `tensord.errors` the exceptions. The
generated messages and stubs of the server's contract are in `tensord.v1`. All other
modules are private.
"""

import importlib as _importlib
from importlib import metadata as _metadata
from typing import TYPE_CHECKING as _TYPE_CHECKING

from tensord import aio, errors, reports, transforms, v1
from tensord._array_functions import einsum, tensordot, transpose
from tensord._array_names import missing as _missing
from tensord._connect import connect
from tensord._deferred import DeferredSession
from tensord._deferred_tensor import DeferredTensor
from tensord._dtypes import bfloat16
from tensord._operator import Operator
from tensord._pipeline import PendingTensor, Pipeline
from tensord._plan_cache import PlanCache
from tensord._plans import Plan
from tensord._products import ProgramProduct
from tensord._program_reports import (
    KeptExtent,
    ProgramExplanation,
    ProgramInfo,
    ProgramReport,
)
from tensord._programs import Program
from tensord._serve import serve
from tensord._session import Session
from tensord._settings import Options
from tensord._specs import TensorSpec
from tensord._tensor import RemoteTensor
from tensord._transport import implementation
from tensord.errors import (
    Aborted,
    AlreadyExists,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    InvalidIndex,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from tensord.reports import (
    Device,
    ExecutionReport,
    Explanation,
    Kernel,
    KernelCandidate,
    Limits,
    LoadedPlans,
    PlanCacheEntry,
    PlanCacheStats,
    PlanInfo,
    ServerInfo,
    ServerStats,
    SessionInfo,
)

if _TYPE_CHECKING:
    from tensord import array

__version__ = _metadata.version("tensord")

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Cancelled",
    "DataLoss",
    "DeadlineExceeded",
    "DeferredSession",
    "DeferredTensor",
    "Device",
    "Error",
    "ExecutionReport",
    "Explanation",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "InvalidIndex",
    "KeptExtent",
    "Kernel",
    "KernelCandidate",
    "Limits",
    "LoadedPlans",
    "NotFound",
    "Operator",
    "Options",
    "OutOfRange",
    "PendingTensor",
    "PermissionDenied",
    "Pipeline",
    "Plan",
    "PlanCache",
    "PlanCacheEntry",
    "PlanCacheStats",
    "PlanInfo",
    "Program",
    "ProgramExplanation",
    "ProgramInfo",
    "ProgramProduct",
    "ProgramReport",
    "RemoteTensor",
    "ResourceExhausted",
    "ServerInfo",
    "ServerStats",
    "Session",
    "SessionInfo",
    "TensorSpec",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "aio",
    "array",
    "bfloat16",
    "connect",
    "einsum",
    "errors",
    "implementation",
    "reports",
    "serve",
    "tensordot",
    "transforms",
    "transpose",
    "v1",
]


def __getattr__(name: str) -> object:
    """Returns `tensord.array`, or what that has: array libraries look for it here."""
    if name.startswith("_"):
        raise AttributeError(f"tensord has no {name!r}", name=name)
    if name == "dask":
        return _importlib.import_module("tensord.dask")
    array = _importlib.import_module("tensord.array")
    if name == "array":
        return array
    if not hasattr(array, name):
        raise _missing("tensord", name, __all__, array.__all__)
    return getattr(array, name)


def __dir__() -> list[str]:
    # Not in `__all__`, as it wants Dask.
    return sorted({*globals(), *__all__, "dask"})

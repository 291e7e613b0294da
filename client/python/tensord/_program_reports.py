"""What a server tells about programs: how they would run, and how they ran."""

from __future__ import annotations

import dataclasses

from tensord._messages import nested, seconds
from tensord._products import Explained, ProgramProduct


@dataclasses.dataclass(frozen=True)
class KeptExtent:
    """How many singular values an SVD of a program kept, the most of any matrix.

    Attributes:
        statement: Which statement it is, from 0.
        label: The one of its labels that counts values.
        extent: Elements of the results beyond are zero.
    """

    statement: int
    label: str
    extent: int


@dataclasses.dataclass(frozen=True)
class ProgramReport:
    """What a program did; see `ProgramReport` in program.proto.

    Attributes:
        operation_count: Operations that ran, counted in all slices.
        folded_operation_count: Those that did not, as what they compute of constants
            was kept.
        flops: Of those that were contractions, reductions or products.
        peak_bytes: Of intermediate results, all that was taken.
        kept_bytes: Of what depends on constants alone, which the program keeps.
        workspace_bytes: Largest scratch memory of an operation.
        program_cache_hit: Whether the program was known: no path was searched. Scalars
            may be others.
        replayed: Whether its operations went to the device at once, as an execution
            before with the same addresses had been recorded.
        queued_seconds: Between the arrival of the request and its start on the device.
        executed_seconds: On the device.
        prepared_seconds: Reading the notation and searching paths.
        kept_extents: Of every SVD that was needed, in the order of statements.
    """

    operation_count: int
    folded_operation_count: int
    flops: float
    peak_bytes: int
    kept_bytes: int
    workspace_bytes: int
    plan_cache_hits: int
    plan_count: int
    program_cache_hit: bool
    gathered_bytes: int
    replayed: bool
    queued_seconds: float = seconds("queued")
    executed_seconds: float = seconds("executed")
    prepared_seconds: float = seconds("prepared")
    kept_extents: tuple[KeptExtent, ...] = nested(KeptExtent)


@dataclasses.dataclass(frozen=True)
class ProgramOperation:
    """One operation of a program; see `ProgramOperation` in program.proto.

    Attributes:
        statement: Which statement it belongs to, from 0.
        operation: "permute", "elementwise", "reduce", "contract", "factorize" or
            "solve".
        text: E.g. `t2[a,c] = t1[a,b] * C[b,c]`.
        kernel: The one that the planner takes; "" when there is nothing to compute.
        slice_count: Times that it is carried out.
        flops: Of one slice, as `predicted_nanoseconds` and `workspace_bytes`.
        is_folded: Whether it depends on constants alone: it is carried out once.
    """

    statement: int
    operation: str
    text: str
    kernel: str
    slice_count: int
    flops: float
    predicted_nanoseconds: float
    workspace_bytes: int
    is_folded: bool


@dataclasses.dataclass(frozen=True)
class ProgramExplanation(Explained):
    """How a program would run; see `ProgramExplanation` in program.proto.

    `print` shows `text`, which has the trees of its products. Notebooks draw the trees.

    Attributes:
        operations: In the order in which they run.
        products: Those of three factors or more.
        flops: Of all operations in all slices, as `predicted_nanoseconds`.
        peak_bytes: Of intermediate results; what execution takes.
        kept_bytes: Of what depends on constants alone; what a program keeps.
        workspace_bytes: Largest scratch memory of an operation.
        text: All of this for people.
    """

    flops: float
    peak_bytes: int
    kept_bytes: int
    workspace_bytes: int
    predicted_nanoseconds: float
    text: str
    operations: tuple[ProgramOperation, ...] = nested(ProgramOperation)
    products: tuple[ProgramProduct, ...] = nested(ProgramProduct)


@dataclasses.dataclass(frozen=True)
class ProgramInfo:
    """What a prepared program is as of now; see `Program` in program.proto.

    Attributes:
        name: Its full name.
        device: The device that it runs on.
        execution_count: Times that it was executed, failures not counted.
        explanation: How it runs.
    """

    name: str
    device: str
    execution_count: int
    explanation: ProgramExplanation = nested(ProgramExplanation)

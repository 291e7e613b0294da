"""What operations are told besides their operands."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from tensord._arguments import check_options, check_timeout, check_type
from tensord._shared_memory import output_of
from tensord._tensor_handle import TensorHandle
from tensord.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy.typing as npt


class Options(TypedDict, total=False):
    """What every operation can be told besides its operands.

    Attributes:
        out: Existing tensor that receives the result; it is returned. Or an array of
            `session.empty`, which has the result then.
        name: Name of a new result. Without one the server chooses, and the result
            leaves the server with its last reference.
        dtype: Element type of a new result; by default that of `c`, else the widest
            of the inputs.
        compute_type: Precision of the arithmetic: "float32", "tf32", "3xtf32", ...
            or a dtype; by default from the element types.
        algorithm: Name of the kernel to use, as `explain` shows them.
        workspace_limit_bytes: Most scratch memory.
        deterministic: Pins the choice of the kernel.
        selection: How the kernel is chosen. "heuristic": by cost models. "measure": by
            running all that could, once for all equal problems; the first call takes
            longer, and needs memory for a second output. "incremental": by running
            another one at each of the next calls, of any session, until each has been
            timed a few times. Every call computes what it should.
        timeout: Deadline in seconds.
    """

    out: TensorHandle | np.ndarray | None
    name: str | None
    dtype: npt.DTypeLike | None
    compute_type: str | npt.DTypeLike | None
    algorithm: str | None
    workspace_limit_bytes: int | None
    deterministic: bool
    selection: str | None
    timeout: float | None


@dataclasses.dataclass(frozen=True)
class Settings:
    """Options with their defaults; refuses unknown ones."""

    out: TensorHandle | None = None
    name: str | None = None
    dtype: npt.DTypeLike | None = None
    compute_type: str | npt.DTypeLike | None = None
    algorithm: str | None = None
    workspace_limit_bytes: int | None = None
    deterministic: bool = False
    selection: str | None = None
    timeout: float | None = None

    @classmethod
    def of(cls, options: Options) -> Settings:
        """Reads options.

        Raises:
            InvalidArgument: Values that are wrong, or do not go together.
            TypeError: Unknown options, or values of the wrong type.
        """
        check_options(options, [field.name for field in dataclasses.fields(cls)])
        out: Any = options.get("out")
        if isinstance(out, np.ndarray):
            check_timeout(options.get("timeout"))
            out = output_of(out, options.get("timeout"))
            if out is not None:
                options = {**options, "out": out}
        return cls(**options)  # type: ignore[arg-type,unused-ignore] # pyright: ignore

    def __post_init__(self) -> None:
        if self.out is not None and not isinstance(self.out, TensorHandle):
            raise InvalidArgument(
                f"out is of type {type(self.out).__name__}, wanted a RemoteTensor, or a "
                "writable array of `session.empty`",
                reason="OUTPUT_NOT_REMOTE",
            )
        text = (str, type(None))
        check_type("name", self.name, text, "a string or None")
        check_type("algorithm", self.algorithm, text, "a kernel's name or None")
        limit = self.workspace_limit_bytes
        if limit is not None:
            integers = (int, np.integer)
            check_type("workspace_limit_bytes", limit, integers, "an int or None")
            if not 0 <= limit < 2**63:
                raise InvalidArgument(
                    f"workspace_limit_bytes is {limit}, wanted 0 to 2**63 - 1",
                    reason="OPTION_OUT_OF_RANGE",
                )
        check_type("deterministic", self.deterministic, (bool, np.bool_), "a bool")
        check_timeout(self.timeout)

    def names_kernel(self) -> bool:
        """Whether something is said that is about one operation."""
        return self.algorithm is not None or self.selection is not None

    def check_result(self) -> None:
        """Refuses what is for a new result together with an existing one.

        Raises:
            InvalidArgument: They are (`OUTPUT_EXISTS`).
        """
        if self.out is not None and (self.name or self.dtype is not None):
            raise InvalidArgument(
                "name and dtype are for a new tensor, got them together with out",
                reason="OUTPUT_EXISTS",
            )

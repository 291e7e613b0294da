"""cuTENSOR 2 through ctypes: its library is used where it is found, without headers."""

import ctypes
import glob
import os
import pathlib
import sys
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from typing import TypeVar

LIBRARY = "libcutensor.so.2"
ALIGNMENT_BYTES = 256  # of what the frameworks allocate
# cutensorOperator_t
IDENTITY = 1
UNARY = {"identity": IDENTITY, "relu": 8, "tanh": 12}
BINARY = {"sum": 3, "max": 6}
ALGORITHM_DEFAULT = -1  # cutensorAlgo_t
NO_JIT = 0  # CUTENSOR_JIT_MODE_NONE
WORKSPACE_DEFAULT = 2  # CUTENSOR_WORKSPACE_DEFAULT

# cudaDataType_t, the descriptor of the arithmetic, and the C type of alpha and beta: complex ones have two parts.
TYPES = {
    "float16": (2, "CUTENSOR_COMPUTE_DESC_32F", c_float),
    "float32": (0, "CUTENSOR_COMPUTE_DESC_32F", c_float),
    "float64": (1, "CUTENSOR_COMPUTE_DESC_64F", c_double),
    "complex64": (4, "CUTENSOR_COMPUTE_DESC_32F", 2 * c_float),
}

OPERAND = [c_void_p, POINTER(c_int32)]  # a descriptor and its modes
INPUT = [*OPERAND, c_int]  # and a unary operator
FUNCTIONS = {
    "cutensorCreate": [POINTER(c_void_p)],
    "cutensorDestroy": [c_void_p],
    "cutensorCreateTensorDescriptor": [
        c_void_p,
        POINTER(c_void_p),
        c_uint32,
        POINTER(c_int64),
        POINTER(c_int64),
        c_int,
        c_uint32,
    ],
    "cutensorDestroyTensorDescriptor": [c_void_p],
    "cutensorCreatePermutation": [c_void_p, POINTER(c_void_p), *INPUT, *OPERAND, c_void_p],
    "cutensorCreateElementwiseBinary": [c_void_p, POINTER(c_void_p), *2 * INPUT, *OPERAND, c_int, c_void_p],
    "cutensorCreateElementwiseTrinary": [c_void_p, POINTER(c_void_p), *3 * INPUT, *OPERAND, c_int, c_int, c_void_p],
    "cutensorCreateReduction": [c_void_p, POINTER(c_void_p), *2 * INPUT, *OPERAND, c_int, c_void_p],
    "cutensorCreateContraction": [c_void_p, POINTER(c_void_p), *3 * INPUT, *OPERAND, c_void_p],
    "cutensorDestroyOperationDescriptor": [c_void_p],
    "cutensorCreatePlanPreference": [c_void_p, POINTER(c_void_p), c_int, c_int],
    "cutensorDestroyPlanPreference": [c_void_p],
    "cutensorEstimateWorkspaceSize": [c_void_p, c_void_p, c_void_p, c_int, POINTER(c_uint64)],
    "cutensorCreatePlan": [c_void_p, POINTER(c_void_p), c_void_p, c_void_p, c_uint64],
    "cutensorDestroyPlan": [c_void_p],
    "cutensorPermute": 6 * [c_void_p],
    "cutensorElementwiseBinaryExecute": 8 * [c_void_p],
    "cutensorElementwiseTrinaryExecute": 10 * [c_void_p],
    "cutensorReduce": [*8 * [c_void_p], c_uint64, c_void_p],
    "cutensorContract": [*9 * [c_void_p], c_uint64, c_void_p],
}


def find_library() -> str | None:
    """$CUTENSOR_LIBRARY, one beside an installed Python package, or what the system's loader finds."""
    places = [os.environ.get("CUTENSOR_LIBRARY", "")]
    for folder in sys.path:
        places += glob.glob(str(pathlib.Path(folder) / "*" / "lib" / LIBRARY)) + glob.glob(
            str(pathlib.Path(folder) / "nvidia" / "*" / "lib" / LIBRARY)
        )
    for place in places:
        if place and os.path.exists(place):
            return place
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return None
    return LIBRARY


class CutensorError(RuntimeError):
    pass


class Cutensor:
    """Has one plan at a time: each new one ends the one before it, also when it cannot be made."""

    def __init__(self, path: str):
        self.library = ctypes.CDLL(path)
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, c_int
        self.library.cutensorGetVersion.restype = ctypes.c_size_t
        self.library.cutensorGetErrorString.argtypes = [c_int]
        self.library.cutensorGetErrorString.restype = c_char_p
        self.made: list[tuple[str, c_void_p]] = []  # for the plan, and what destroys it
        self.handle = c_void_p()
        self.call("cutensorCreate", byref(self.handle))

    @property
    def version(self) -> str:
        number = self.library.cutensorGetVersion()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            text = self.library.cutensorGetErrorString(status)
            raise CutensorError(f"{name} returned {status}: {text.decode()}")

    def arithmetic(self, name: str) -> c_void_p:
        return c_void_p.in_dll(self.library, name)

    def make(self, create: str, destroy: str, *arguments: object) -> c_void_p:
        made = c_void_p()
        self.call(create, self.handle, byref(made), *arguments)
        self.made.append((destroy, made))
        return made

    def end_plan(self) -> None:
        while self.made:
            destroy, made = self.made.pop()
            self.call(destroy, made)

    def close(self) -> None:
        self.end_plan()
        self.call("cutensorDestroy", self.handle)

    def permutation(self, extents: list[int], perm: list[int], type_name: str) -> "Permutation":
        return self.only(lambda: Permutation(self, extents, perm, type_name))

    def elementwise(
        self, labels: tuple[str, ...], extents: dict[str, int], type_name: str, unary: str
    ) -> "Elementwise":
        return self.only(lambda: Elementwise(self, labels, extents, type_name, unary))

    def reduction(self, labels: tuple[str, str], extents: dict[str, int], type_name: str, op: str) -> "Reduction":
        return self.only(lambda: Reduction(self, labels, extents, type_name, op))

    def contraction(self, labels: tuple[str, str, str], extents: dict[str, int], type_name: str) -> "Contraction":
        return self.only(lambda: Contraction(self, labels, extents, type_name))

    def only(self, make_plan: Callable[[], "AnyPlan"]) -> "AnyPlan":
        self.end_plan()
        return make_plan()


def packed_strides(extents: list[int]) -> list[int]:
    """Of a tensor whose first mode is the fastest."""
    strides, stride = [], 1
    for extent in extents:
        strides.append(stride)
        stride *= extent
    return strides


def modes(labels: str) -> object:
    return (c_int32 * len(labels))(*map(ord, labels))


class Plan:
    """What plans are made of. The first mode is the fastest."""

    def __init__(self, cutensor: Cutensor, type_name: str):
        self.data_type, self.compute, self.scalar = TYPES[type_name]
        # Of complex numbers the first part is the real one, the other 0.
        self.one, self.zero = self.scalar(1), self.scalar(0)
        self.cutensor = cutensor

    def tensor(self, extents: list[int]) -> c_void_p:
        count = len(extents)
        return self.cutensor.make(
            "cutensorCreateTensorDescriptor",
            "cutensorDestroyTensorDescriptor",
            count,
            (c_int64 * count)(*extents),
            (c_int64 * count)(*packed_strides(extents)),
            self.data_type,
            ALIGNMENT_BYTES,
        )

    def labelled(self, labels: tuple[str, ...], extents: dict[str, int]) -> list[tuple[c_void_p, object]]:
        """A descriptor and modes for each; operands that are alike have the same, as c and d must."""
        made = {text: (self.tensor([extents[label] for label in text]), modes(text)) for text in dict.fromkeys(labels)}
        return [made[text] for text in labels]

    def operation(self, create: str, *arguments: object) -> c_void_p:
        arithmetic = self.cutensor.arithmetic(self.compute)
        return self.cutensor.make(create, "cutensorDestroyOperationDescriptor", *arguments, arithmetic)

    def preference(self, algorithm: int = ALGORITHM_DEFAULT) -> c_void_p:
        return self.cutensor.make("cutensorCreatePlanPreference", "cutensorDestroyPlanPreference", algorithm, NO_JIT)

    def plan(self, operation: c_void_p, preference: c_void_p, workspace_bytes: int = 0) -> c_void_p:
        return self.cutensor.make("cutensorCreatePlan", "cutensorDestroyPlan", operation, preference, workspace_bytes)

    def workspace(self, operation: c_void_p, preference: c_void_p) -> int:
        """Bytes."""
        workspace = c_uint64()
        arguments = (operation, preference, WORKSPACE_DEFAULT, byref(workspace))
        self.cutensor.call("cutensorEstimateWorkspaceSize", self.cutensor.handle, *arguments)
        return workspace.value

    def execute(self, name: str, *arguments: object) -> None:
        self.cutensor.call(name, self.cutensor.handle, self.planned, *arguments)


AnyPlan = TypeVar("AnyPlan", bound=Plan)


class Permutation(Plan):
    """Mode j of the result is mode perm[j] of the operand."""

    def __init__(self, cutensor: Cutensor, extents: list[int], perm: list[int], type_name: str):
        super().__init__(cutensor, type_name)
        count = len(extents)
        operation = self.operation(
            "cutensorCreatePermutation",
            self.tensor(extents),
            (c_int32 * count)(*range(count)),
            IDENTITY,
            self.tensor([extents[p] for p in perm]),
            (c_int32 * count)(*perm),
        )
        self.planned = self.plan(operation, self.preference(ALGORITHM_DEFAULT))

    def run(self, a: int, d: int, stream: int) -> None:
        """Queues it on a CUDA stream; `a` and `d` are addresses on the device."""
        self.execute("cutensorPermute", byref(self.one), a, d, stream)


class Elementwise(Plan):
    """d = unary(a) + [b +] c; `labels` are those of a, maybe b, c and d. A mode that an input lacks is repeated."""

    def __init__(
        self, cutensor: Cutensor, labels: tuple[str, ...], extents: dict[str, int], type_name: str, unary: str
    ):
        super().__init__(cutensor, type_name)
        self.arity = {3: "Binary", 4: "Trinary"}[len(labels)]
        a, *others, d = self.labelled(labels, extents)
        inputs = [*a, UNARY[unary]]
        for other in others:
            inputs += [*other, IDENTITY]
        operation = self.operation(
            f"cutensorCreateElementwise{self.arity}", *inputs, *d, *[BINARY["sum"]] * len(others)
        )
        self.planned = self.plan(operation, self.preference())

    def run(self, inputs: list[int], d: int, stream: int) -> None:
        """Queues it on a CUDA stream; the rest are addresses on the device."""
        scaled = (argument for address in inputs for argument in (byref(self.one), address))
        self.execute(f"cutensorElementwise{self.arity}Execute", *scaled, d, stream)


class Reduction(Plan):
    """Reduces a over the modes that d lacks; `labels` are those of a and d."""

    def __init__(self, cutensor: Cutensor, labels: tuple[str, str], extents: dict[str, int], type_name: str, op: str):
        super().__init__(cutensor, type_name)
        a, d = self.labelled(labels, extents)
        operation = self.operation("cutensorCreateReduction", *a, IDENTITY, *d, IDENTITY, *d, BINARY[op])
        preference = self.preference()
        self.workspace_bytes = self.workspace(operation, preference)
        self.planned = self.plan(operation, preference, self.workspace_bytes)

    def run(self, a: int, d: int, workspace: int, stream: int) -> None:
        """Queues it on a CUDA stream; the rest are addresses on the device."""
        inputs = (byref(self.one), a, byref(self.zero), d)
        self.execute("cutensorReduce", *inputs, d, workspace, self.workspace_bytes, stream)


class Contraction(Plan):
    """d = a * b; `labels` are those of a, b and d."""

    def __init__(self, cutensor: Cutensor, labels: tuple[str, str, str], extents: dict[str, int], type_name: str):
        super().__init__(cutensor, type_name)
        a, b, d = self.labelled(labels, extents)
        operation = self.operation("cutensorCreateContraction", *a, IDENTITY, *b, IDENTITY, *d, IDENTITY, *d)
        preference = self.preference()
        self.workspace_bytes = self.workspace(operation, preference)
        self.planned = self.plan(operation, preference, self.workspace_bytes)

    def run(self, a: int, b: int, d: int, workspace: int, stream: int) -> None:
        """Queues it on a CUDA stream; the rest are addresses on the device."""
        inputs = (byref(self.one), a, b, byref(self.zero), d)
        self.execute("cutensorContract", *inputs, d, workspace, self.workspace_bytes, stream)

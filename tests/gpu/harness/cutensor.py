"""Permutations and contractions by cuTENSOR 2, through ctypes: its library is used where it is found, without headers."""

import ctypes
import glob
import os
import pathlib
import sys
from ctypes import POINTER, byref, c_double, c_float, c_int, c_int32, c_int64, c_uint32, c_uint64, c_void_p

LIBRARY = "libcutensor.so.2"
ALIGNMENT_BYTES = 256  # of what the frameworks allocate
IDENTITY = 1  # CUTENSOR_OP_IDENTITY
ALGORITHM_DEFAULT, ALGORITHM_PATIENT = -1, -6  # cutensorAlgo_t
NO_JIT = 0  # CUTENSOR_JIT_MODE_NONE
WORKSPACE_DEFAULT = 2  # CUTENSOR_WORKSPACE_DEFAULT

# cudaDataType_t, the descriptor of the arithmetic, and the C type of alpha and beta: complex ones have two parts.
TYPES = {
    "float16": (2, "CUTENSOR_COMPUTE_DESC_32F", c_float),
    "float32": (0, "CUTENSOR_COMPUTE_DESC_32F", c_float),
    "float64": (1, "CUTENSOR_COMPUTE_DESC_64F", c_double),
    "complex64": (4, "CUTENSOR_COMPUTE_DESC_32F", 2 * c_float),
}

FUNCTIONS = {
    "cutensorCreate": [POINTER(c_void_p)],
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
    "cutensorCreatePermutation": [
        c_void_p,
        POINTER(c_void_p),
        c_void_p,
        POINTER(c_int32),
        c_int,
        c_void_p,
        POINTER(c_int32),
        c_void_p,
    ],
    "cutensorCreateContraction": [
        c_void_p,
        POINTER(c_void_p),
        *3 * [c_void_p, POINTER(c_int32), c_int],
        c_void_p,
        POINTER(c_int32),
        c_void_p,
    ],
    "cutensorDestroyOperationDescriptor": [c_void_p],
    "cutensorCreatePlanPreference": [c_void_p, POINTER(c_void_p), c_int, c_int],
    "cutensorDestroyPlanPreference": [c_void_p],
    "cutensorEstimateWorkspaceSize": [c_void_p, c_void_p, c_void_p, c_int, POINTER(c_uint64)],
    "cutensorCreatePlan": [c_void_p, POINTER(c_void_p), c_void_p, c_void_p, c_uint64],
    "cutensorDestroyPlan": [c_void_p],
    "cutensorPermute": [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p],
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
    def __init__(self, path: str):
        self.library = ctypes.CDLL(path)
        for name, arguments in FUNCTIONS.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = arguments, c_int
        self.library.cutensorGetVersion.restype = ctypes.c_size_t
        self.handle = c_void_p()
        self.call("cutensorCreate", byref(self.handle))

    @property
    def version(self) -> str:
        number = self.library.cutensorGetVersion()
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise CutensorError(f"{name} returned {status}")

    def permutation(self, extents: list[int], perm: list[int], type_name: str, patient: bool = False) -> "Permutation":
        return Permutation(self, extents, perm, type_name, patient)

    def contraction(self, labels: tuple[str, str, str], extents: dict[str, int], type_name: str) -> "Contraction":
        return Contraction(self, labels, extents, type_name)


def packed_strides(extents: list[int]) -> list[int]:
    """Of a tensor whose first mode is the fastest."""
    strides, stride = [], 1
    for extent in extents:
        strides.append(stride)
        stride *= extent
    return strides


class Plan:
    """A plan and what it was made of. The first mode is the fastest."""

    def __init__(self, cutensor: Cutensor, type_name: str):
        self.data_type, self.compute, self.scalar = TYPES[type_name]
        self.cutensor = cutensor
        self.made: list[tuple[str, c_void_p]] = []

    def make(self, create: str, destroy: str, *arguments: object) -> c_void_p:
        made = c_void_p()
        self.cutensor.call(create, self.cutensor.handle, byref(made), *arguments)
        self.made.append((destroy, made))
        return made

    def tensor(self, extents: list[int]) -> c_void_p:
        count = len(extents)
        return self.make(
            "cutensorCreateTensorDescriptor",
            "cutensorDestroyTensorDescriptor",
            count,
            (c_int64 * count)(*extents),
            (c_int64 * count)(*packed_strides(extents)),
            self.data_type,
            ALIGNMENT_BYTES,
        )

    def operation(self, create: str, *arguments: object) -> c_void_p:
        arithmetic = c_void_p.in_dll(self.cutensor.library, self.compute)
        return self.make(create, "cutensorDestroyOperationDescriptor", *arguments, arithmetic)

    def preference(self, algorithm: int) -> c_void_p:
        return self.make("cutensorCreatePlanPreference", "cutensorDestroyPlanPreference", algorithm, NO_JIT)

    def plan(self, operation: c_void_p, preference: c_void_p, workspace_bytes: int) -> c_void_p:
        return self.make("cutensorCreatePlan", "cutensorDestroyPlan", operation, preference, workspace_bytes)

    def close(self) -> None:
        while self.made:
            destroy, made = self.made.pop()
            self.cutensor.call(destroy, made)


class Permutation(Plan):
    """Mode j of the result is mode perm[j] of the operand."""

    def __init__(self, cutensor: Cutensor, extents: list[int], perm: list[int], type_name: str, patient: bool):
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
        preference = self.preference(ALGORITHM_PATIENT if patient else ALGORITHM_DEFAULT)
        self.planned = self.plan(operation, preference, 0)
        self.one = self.scalar(1)

    def run(self, a: int, d: int, stream: int) -> None:
        """Queues it on a CUDA stream; `a` and `d` are addresses on the device."""
        self.cutensor.call("cutensorPermute", self.cutensor.handle, self.planned, byref(self.one), a, d, stream)


class Contraction(Plan):
    """d = a * b; `labels` are those of a, b and d."""

    def __init__(self, cutensor: Cutensor, labels: tuple[str, str, str], extents: dict[str, int], type_name: str):
        super().__init__(cutensor, type_name)

        def modes(text: str) -> object:
            return (c_int32 * len(text))(*map(ord, text))

        of_a, of_b, of_d = labels
        a, b, d = (self.tensor([extents[label] for label in text]) for text in labels)
        inputs = (a, modes(of_a), IDENTITY, b, modes(of_b), IDENTITY, d, modes(of_d), IDENTITY)
        operation = self.operation("cutensorCreateContraction", *inputs, d, modes(of_d))
        preference = self.preference(ALGORITHM_DEFAULT)
        workspace = c_uint64()
        cutensor.call(
            "cutensorEstimateWorkspaceSize",
            cutensor.handle,
            operation,
            preference,
            WORKSPACE_DEFAULT,
            byref(workspace),
        )
        self.workspace_bytes = workspace.value
        self.planned = self.plan(operation, preference, self.workspace_bytes)
        # The first part is the real one, the other 0.
        self.one, self.zero = self.scalar(1), self.scalar(0)

    def run(self, a: int, b: int, d: int, workspace: int, stream: int) -> None:
        """Queues it on a CUDA stream; the rest are addresses on the device."""
        self.cutensor.call(
            "cutensorContract",
            self.cutensor.handle,
            self.planned,
            byref(self.one),
            a,
            b,
            byref(self.zero),
            d,
            d,
            workspace,
            self.workspace_bytes,
            stream,
        )

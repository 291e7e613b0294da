"""torch.einsum, CuPy and cuTENSOR on the contractions of gpu_bench, and cuBLAS' matrix product of equal m, n and k."""

import functools
import math
import pathlib
import time
from collections.abc import Callable
from types import ModuleType

from harness import contractions
from harness.contractions import ContractionCase
from harness.cutensor import Cutensor
from harness.peer_device import TorchDevice, Work, first_line, print_row, time_work

SQUARE = 8192  # of the product that gives cuBLAS' peak
# Of numbers from [-1, 1], of which complex ones have two.
MEAN_SQUARE = {"float32": 1 / 3, "float64": 1 / 3, "complex64": 2 / 3}


class Operands:
    """Buffers that hold the operands of every case in one type."""

    def __init__(self, device: TorchDevice, cases: list[ContractionCase], type_name: str):
        def most(labels_of: Callable[[ContractionCase], str]) -> int:
            return max(case.elements(labels_of(case), type_name) for case in cases)

        self.type_name = type_name
        # A product of equal m, n and k has operands of the same sizes.
        square = SQUARE * SQUARE
        self.a = device.numbers(max(most(lambda case: case.a), square), type_name)
        self.b = device.numbers(max(most(lambda case: case.b), square), type_name)
        self.d = device.numbers(max(most(lambda case: case.d), square), type_name)

    def shaped(self, case: ContractionCase) -> tuple[object, object]:
        """a and b, the last mode fastest."""
        return tuple(
            buffer[: case.elements(labels, self.type_name)].view(case.shape(labels, self.type_name))
            for buffer, labels in ((self.a, case.a), (self.b, case.b))
        )


def flops(m: int, n: int, k: int, type_name: str) -> float:
    return (8.0 if type_name == "complex64" else 2.0) * m * n * k


def torch_contraction(device: TorchDevice, case: ContractionCase, operands: Operands) -> Work:
    a, b = operands.shaped(case)
    # A view with permuted strides is no result yet.
    return lambda: device.torch.einsum(case.einsum, a, b).contiguous()


class CupyContractions:
    def __init__(self, cupy: ModuleType):
        self.cupy = cupy

    def __call__(self, device: TorchDevice, case: ContractionCase, operands: Operands) -> Work:
        cupy = self.cupy
        cupy.get_default_memory_pool().free_all_blocks()
        a, b = map(cupy.from_dlpack, operands.shaped(case))
        stream = cupy.cuda.ExternalStream(device.stream)

        def run() -> object:
            with stream:
                return cupy.ascontiguousarray(cupy.einsum(case.einsum, a, b))

        return run


class CutensorContractions:
    def __init__(self, cutensor: Cutensor):
        self.cutensor = cutensor

    def __call__(self, device: TorchDevice, case: ContractionCase, operands: Operands) -> Work:
        kind = operands.type_name
        plan = self.cutensor.contraction((case.a, case.b, case.d), case.extents[kind], kind)
        workspace = device.empty(plan.workspace_bytes)
        stream = device.stream
        a, b, d = (buffer.data_ptr() for buffer in (operands.a, operands.b, operands.d))
        shape = case.shape(case.d, kind)

        def run() -> object:
            plan.run(a, b, d, workspace.data_ptr(), stream)
            return operands.d[: math.prod(shape)].view(shape)

        return run


def product(device: TorchDevice, operands: Operands, m: int, n: int, k: int) -> Work:
    """A matrix product by cuBLAS, nothing transposed."""
    a, b = operands.a[: m * k].view(m, k), operands.b[: k * n].view(k, n)
    d = operands.d[: m * n].view(m, n)
    return lambda: device.torch.mm(a, b, out=d)


def time_product(device: TorchDevice, operands: Operands, m: int, n: int, k: int) -> dict:
    """Time and rate; or what it raised."""
    try:
        moved = operands.a.element_size() * (m * n + m * k + n * k)
        ns = device.nanoseconds(moved, product(device, operands, m, n, k))
        return {"ns": ns, "gflop_per_s": flops(m, n, k, operands.type_name) / ns}
    except Exception as error:  # noqa: BLE001
        return {"refused": first_line(error)}


def run_contractions(
    device: TorchDevice, cupy: ModuleType | None, cutensor: Cutensor | None, data: pathlib.Path, end: float
) -> tuple[int, int]:
    """Cases and peers that ran, and those for which no time was left."""
    peers: dict[str, Callable] = {"torch": torch_contraction}
    if cupy is not None:
        peers["cupy"] = CupyContractions(cupy)
    if cutensor is not None:
        peers["cutensor"] = CutensorContractions(cutensor)
    cases = contractions.contractions(data)
    buffers = {name: Operands(device, cases, name) for name in contractions.COLUMNS}
    done = left_out = 0
    for type_name, operands in buffers.items():
        if time.monotonic() < end:
            result = time_product(device, operands, SQUARE, SQUARE, SQUARE)
            print_row(of_part="contraction", peer="cublas", case=f"square of {SQUARE}", type=type_name, **result)
    for case in cases:
        for type_name, operands in buffers.items():
            # Most of what the frameworks keep has the wrong size for the next case.
            device.torch.cuda.empty_cache()
            facts = {"of_part": "contraction", "suite": case.suite, "id": case.id, "type": type_name}
            first: list = []
            for peer in ("cublas", *peers):
                if time.monotonic() >= end:
                    left_out += 1
                    continue
                if peer == "cublas":
                    result = time_product(device, operands, *case.matrix(type_name))
                else:
                    operands.d.zero_()
                    prepare = functools.partial(peers[peer], device, case, operands)
                    magnitude = case.matrix(type_name)[2] * MEAN_SQUARE[type_name]
                    result = time_work(device, prepare, case.bytes(type_name), first, magnitude)
                print_row(**facts, peer=peer, **result)
                done += 1
    return done, left_out

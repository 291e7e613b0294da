"""PyTorch, CuPy and cuTENSOR on the element-wise operations and reductions of gpu_bench.

The frameworks run eagerly, as their users call them: an expression of two operations is two kernels. cuTENSOR makes one
kernel of an expression, and adds up float16 in float32.
"""

import functools
import time
from types import ModuleType
from typing import Protocol

from harness import operations
from harness.cutensor import Cutensor
from harness.operations import ElementwiseCase, OperationCase, ReductionCase
from harness.peer_device import TorchDevice, Work, print_row, time_work, type_of

# Each element of d is a sum of at most so many terms of at most 1. What is reduced has sums without any rounding.
MAGNITUDE = {"elementwise": 3.0, "reduction": 0.0}
CASES: dict[str, list] = {"elementwise": operations.ELEMENTWISE, "reduction": operations.REDUCTION}


class Peer(Protocol):
    """Makes work of a case by the method with the name of its part. Operands are PyTorch's, the last mode fastest."""

    def elementwise(self, device: TorchDevice, case: ElementwiseCase, inputs: list, d: object) -> Work: ...

    def reduction(self, device: TorchDevice, case: ReductionCase, inputs: list, d: object) -> Work: ...


class TorchOperations:
    """CuPy's, too: but for relu the two have the same names and the same order of arguments."""

    def __init__(self, library: ModuleType):
        self.library = library
        self.unary = {"identity": lambda a: a, "relu": self.relu, "tanh": library.tanh}

    def relu(self, a: object) -> object:
        return self.library.relu(a)

    def elementwise(self, device: TorchDevice, case: ElementwiseCase, inputs: list, d: object) -> Work:
        add, unary = self.library.add, self.unary[case.unary]
        a, *others, c = inputs
        if case.is_transposed:
            a = a.T

        def run() -> object:
            total = unary(a)
            for other in others:
                total = add(total, other)
            return add(total, c, out=d)

        return run

    def reduction(self, device: TorchDevice, case: ReductionCase, inputs: list, d: object) -> Work:
        reduce = {"sum": self.library.sum, "max": self.library.amax}[case.op]
        return lambda: reduce(*inputs, case.axes)


class CupyOperations(TorchOperations):
    def relu(self, a: object) -> object:
        return self.library.maximum(a, 0)

    def elementwise(self, device: TorchDevice, case: ElementwiseCase, inputs: list, d: object) -> Work:
        return self.on_stream(device, super().elementwise(device, case, self.arrays(inputs), *self.arrays([d])))

    def reduction(self, device: TorchDevice, case: ReductionCase, inputs: list, d: object) -> Work:
        return self.on_stream(device, super().reduction(device, case, self.arrays(inputs), d))

    def arrays(self, tensors: list) -> list:
        """The same memory."""
        return list(map(self.library.from_dlpack, tensors))

    def on_stream(self, device: TorchDevice, work: Work) -> Work:
        stream = self.library.cuda.ExternalStream(device.stream)

        def run() -> object:
            with stream:
                return work()

        return run


class CutensorOperations:
    def __init__(self, cutensor: Cutensor):
        self.cutensor = cutensor

    def elementwise(self, device: TorchDevice, case: ElementwiseCase, inputs: list, d: object) -> Work:
        plan = self.cutensor.elementwise((*case.inputs, case.d), case.extents, type_of(d), case.unary)
        addresses, stream = [tensor.data_ptr() for tensor in inputs], device.stream

        def run() -> object:
            plan.run(addresses, d.data_ptr(), stream)
            return d

        return run

    def reduction(self, device: TorchDevice, case: ReductionCase, inputs: list, d: object) -> Work:
        plan = self.cutensor.reduction((*case.inputs, case.d), case.extents, type_of(d), case.op)
        workspace = device.empty(plan.workspace_bytes)
        (a,), stream = inputs, device.stream

        def run() -> object:
            plan.run(a.data_ptr(), d.data_ptr(), workspace.data_ptr(), stream)
            return d

        return run


class Operands:
    """Buffers that hold the operands of every case of a part in one type."""

    def __init__(self, device: TorchDevice, cases: list[OperationCase], type_name: str):
        count = max(len(case.inputs) for case in cases)
        most = max(case.elements(labels) for case in cases for labels in case.inputs)
        self.inputs = [device.sixteenths(most, type_name) for _ in range(count)]
        self.d = device.empty(max(case.elements(case.d) for case in cases), type_name)

    def shaped(self, case: OperationCase) -> tuple[list, object]:
        """The inputs and d."""
        *inputs, d = (
            buffer[: case.elements(labels)].view(case.shape(labels))
            for buffer, labels in zip((*self.inputs[: len(case.inputs)], self.d), (*case.inputs, case.d), strict=True)
        )
        return inputs, d


def run_operations(
    device: TorchDevice, cupy: ModuleType | None, cutensor: Cutensor | None, end: float
) -> tuple[int, int]:
    """Cases and peers that ran, and those for which no time was left."""
    peers: dict[str, Peer] = {"torch": TorchOperations(device.torch)}
    if cupy is not None:
        peers["cupy"] = CupyOperations(cupy)
    if cutensor is not None:
        peers["cutensor"] = CutensorOperations(cutensor)
    done = left_out = 0
    for part, cases in CASES.items():
        for type_name in operations.TYPES:
            operands = None  # of another type
            device.torch.cuda.empty_cache()
            if time.monotonic() < end:
                operands = Operands(device, cases, type_name)
            for case in cases:
                first: list = []
                for peer, makes in peers.items():
                    if operands is None or time.monotonic() >= end:
                        left_out += 1
                        continue
                    inputs, d = operands.shaped(case)
                    d.zero_()
                    prepare = functools.partial(getattr(makes, part), device, case, inputs, d)
                    result = time_work(device, prepare, case.bytes(type_name), first, MAGNITUDE[part])
                    print_row(of_part=part, peer=peer, case=case.name, type=type_name, **result)
                    done += 1
    return done, left_out

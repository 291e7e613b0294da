"""Fakes of what the peers are made of, which compute on memory of this machine.

A cuTENSOR that does what its descriptors say, called through ctypes with the arguments that the harness declares; and
one framework that is PyTorch and CuPy.
"""

import contextlib
import ctypes
import dataclasses
import itertools
import math
import struct
import types
from collections.abc import Callable, Iterator

from harness import cutensor, peer_device

FORMATS = {"float32": "f", "float64": "d", "float16": "e", "uint8": "B"}  # of struct, by type
CUDA_TYPES = {0: "float32", 1: "float64", 2: "float16"}  # cudaDataType_t
ARITHMETIC = {1: "float32", 2: "float64"}  # by the fake's descriptor of it
# cutensorOperator_t
UNARY = {1: lambda x: x, 8: lambda x: max(x, 0.0), 12: math.tanh}
BINARY = {3: lambda x, y: x + y, 6: max}
NOT_SUPPORTED = 15  # CUTENSOR_STATUS_NOT_SUPPORTED
WORKSPACE_BYTES = 96
STREAM = 77


def get(address: int, index: int, type_name: str) -> float:
    form = FORMATS[type_name]
    size = struct.calcsize(form)
    return struct.unpack(form, ctypes.string_at(address + index * size, size))[0]


def put(address: int, index: int, type_name: str, value: float) -> None:
    data = struct.pack(FORMATS[type_name], value)
    ctypes.memmove(address + index * len(data), data, len(data))


def indices(extents: dict[int, int]) -> Iterator[dict[int, int]]:
    """Every one, by mode."""
    for values in itertools.product(*map(range, extents.values())):
        yield dict(zip(extents, values, strict=True))


@dataclasses.dataclass
class Operand:
    """A tensor descriptor with its modes."""

    type_name: str
    extents: dict[int, int]
    strides: dict[int, int]
    operator: int = 1

    def offset(self, index: dict[int, int]) -> int:
        return sum(index[mode] * stride for mode, stride in self.strides.items())

    def read(self, address: int, index: dict[int, int]) -> float:
        return UNARY[self.operator](get(address, self.offset(index), self.type_name))

    def write(self, address: int, index: dict[int, int], value: float) -> None:
        put(address, self.offset(index), self.type_name, value)


class FakeCutensor:
    """Its methods have the parameters of the header of cuTENSOR 2. `refused` names one that returns an error."""

    def __init__(self) -> None:
        self.alive: dict[int, object] = {}
        self.numbers = itertools.count(1000)
        self.calls: list[str] = []
        self.refused = ""

    def library(self) -> object:
        """What ctypes.CDLL() gives: functions that convert their arguments as the harness declares them."""
        functions = {name: self.function(name, arguments) for name, arguments in cutensor.FUNCTIONS.items()}
        return types.SimpleNamespace(
            **functions,
            cutensorGetVersion=lambda: 20300,
            cutensorGetErrorString=lambda status: f"status {status}".encode(),
        )

    def function(self, name: str, arguments: list) -> object:
        method = getattr(self, name)

        def call(*values: object) -> int:
            self.calls.append(name)
            if name == self.refused:
                return NOT_SUPPORTED
            try:
                method(*values)
            except Exception as error:  # noqa: BLE001
                self.calls.append(f"{name}: {type(error).__name__}: {error}")
                return 7  # CUTENSOR_STATUS_INVALID_VALUE
            return 0

        return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(call)

    def new(self, place: object, made: object) -> None:
        place[0] = next(self.numbers)
        self.alive[place[0]] = made

    def destroy(self, number: int) -> None:
        del self.alive[number]

    def operand(self, descriptor: int, modes: object, operator: int = 1) -> Operand:
        type_name, extents, strides = self.alive[descriptor]
        labels = modes[: len(extents)]
        return Operand(
            type_name, dict(zip(labels, extents, strict=True)), dict(zip(labels, strides, strict=True)), operator
        )

    def cutensorCreate(self, handle):
        self.new(handle, "handle")

    def cutensorDestroy(self, handle):
        self.destroy(handle)

    def cutensorCreateTensorDescriptor(self, handle, desc, count, extent, stride, data_type, alignment):
        assert self.alive[handle] == "handle" and alignment % 16 == 0
        self.new(desc, (CUDA_TYPES[data_type], extent[:count], stride[:count]))

    cutensorDestroyTensorDescriptor = destroy
    cutensorDestroyOperationDescriptor = destroy
    cutensorDestroyPlanPreference = destroy
    cutensorDestroyPlan = destroy

    def create_operation(self, desc: object, operands: list[tuple], operators: list[int], compute: int) -> None:
        """The last two operands are c and d, which cuTENSOR wants to be alike."""
        made = [self.operand(*operand) for operand in operands]
        assert operands[-2][0] == operands[-1][0] and made[-2].strides == made[-1].strides
        assert ARITHMETIC[compute] == ("float64" if made[0].type_name == "float64" else "float32")
        self.new(desc, (made, [BINARY[operator] for operator in operators], ARITHMETIC[compute]))

    def cutensorCreateElementwiseBinary(
        self, handle, desc, desc_a, mode_a, op_a, desc_c, mode_c, op_c, desc_d, mode_d, op_ac, compute
    ):
        operands = [(desc_a, mode_a, op_a), (desc_c, mode_c, op_c), (desc_d, mode_d)]
        self.create_operation(desc, operands, [op_ac], compute)

    def cutensorCreateElementwiseTrinary(
        self,
        handle,
        desc,
        desc_a,
        mode_a,
        op_a,
        desc_b,
        mode_b,
        op_b,
        desc_c,
        mode_c,
        op_c,
        desc_d,
        mode_d,
        op_ab,
        op_abc,
        compute,
    ):
        operands = [(desc_a, mode_a, op_a), (desc_b, mode_b, op_b), (desc_c, mode_c, op_c), (desc_d, mode_d)]
        self.create_operation(desc, operands, [op_ab, op_abc], compute)

    def cutensorCreateReduction(
        self, handle, desc, desc_a, mode_a, op_a, desc_c, mode_c, op_c, desc_d, mode_d, op_reduce, compute
    ):
        operands = [(desc_a, mode_a, op_a), (desc_c, mode_c, op_c), (desc_d, mode_d)]
        self.create_operation(desc, operands, [op_reduce], compute)

    def cutensorCreatePermutation(self, handle, desc, desc_a, mode_a, op_a, desc_b, mode_b, compute):
        self.new(desc, ([self.operand(desc_a, mode_a, op_a), self.operand(desc_b, mode_b)], [], ARITHMETIC[compute]))

    def cutensorCreateContraction(
        self,
        handle,
        desc,
        desc_a,
        mode_a,
        op_a,
        desc_b,
        mode_b,
        op_b,
        desc_c,
        mode_c,
        op_c,
        desc_d,
        mode_d,
        compute,
    ):
        operands = [(desc_a, mode_a, op_a), (desc_b, mode_b, op_b), (desc_c, mode_c, op_c), (desc_d, mode_d)]
        self.create_operation(desc, operands, [], compute)

    def cutensorCreatePlanPreference(self, handle, pref, algo, jit_mode):
        assert algo == -1 and jit_mode == 0
        self.new(pref, "preference")

    def cutensorEstimateWorkspaceSize(self, handle, desc, pref, workspace_pref, size):
        assert self.alive[pref] == "preference" and workspace_pref == 2
        size[0] = WORKSPACE_BYTES

    def cutensorCreatePlan(self, handle, plan, desc, pref, workspace_limit):
        assert self.alive[pref] == "preference"
        self.new(plan, (*self.alive[desc], workspace_limit))

    def planned(self, plan: int, scalars: list[int], stream: int) -> tuple:
        """The plan's operands, operators and workspace, and the values of scalars."""
        assert stream == STREAM
        operands, operators, arithmetic, workspace_bytes = self.alive[plan]
        return operands, operators, [get(scalar, 0, arithmetic) for scalar in scalars], workspace_bytes

    def run_elementwise(self, plan: int, inputs: list[tuple[int, int]], d: int, stream: int) -> None:
        operands, operators, factors, _ = self.planned(plan, [scalar for scalar, _ in inputs], stream)
        *sources, target = operands
        for index in indices(target.extents):
            terms = [
                factor * source.read(address, index)
                for factor, source, (_, address) in zip(factors, sources, inputs, strict=True)
            ]
            total = terms[0]
            for operator, term in zip(operators, terms[1:], strict=True):
                total = operator(total, term)
            target.write(d, index, total)

    def cutensorPermute(self, handle, plan, alpha, a, b, stream):
        self.run_elementwise(plan, [(alpha, a)], b, stream)

    def cutensorElementwiseBinaryExecute(self, handle, plan, alpha, a, gamma, c, d, stream):
        self.run_elementwise(plan, [(alpha, a), (gamma, c)], d, stream)

    def cutensorElementwiseTrinaryExecute(self, handle, plan, alpha, a, beta, b, gamma, c, d, stream):
        self.run_elementwise(plan, [(alpha, a), (beta, b), (gamma, c)], d, stream)

    def cutensorReduce(self, handle, plan, alpha, a, beta, c, d, workspace, workspace_size, stream):
        (source, _, target), (operator,), scalars, workspace_bytes = self.planned(plan, [alpha, beta], stream)
        assert workspace and workspace_size >= workspace_bytes == WORKSPACE_BYTES and scalars == [1, 0]
        for index in indices(target.extents):
            rest = {mode: extent for mode, extent in source.extents.items() if mode not in target.extents}
            values = [source.read(a, index | more) for more in indices(rest)]
            total = values[0]
            for value in values[1:]:
                total = operator(total, value)
            target.write(d, index, total)

    def cutensorContract(self, handle, plan, alpha, a, b, beta, c, d, workspace, workspace_size, stream):
        (of_a, of_b, _, target), _, scalars, workspace_bytes = self.planned(plan, [alpha, beta], stream)
        assert workspace and workspace_size >= workspace_bytes == WORKSPACE_BYTES and scalars == [1, 0]
        for index in indices(target.extents):
            rest = {mode: extent for mode, extent in of_a.extents.items() if mode not in target.extents}
            products = (of_a.read(a, index | more) * of_b.read(b, index | more) for more in indices(rest))
            target.write(d, index, sum(products))


class Tensor:
    """Of a framework, the last mode fastest."""

    def __init__(self, shape: list[int], type_name: str, values: list[float] | None = None):
        self.memory = (ctypes.c_char * max(8 * math.prod(shape), 1))()
        self.shape, self.dtype = list(shape), f"torch.{type_name}"
        self.strides = cutensor.packed_strides(self.shape[::-1])[::-1]
        for i, value in enumerate(values or []):
            put(self.data_ptr(), i, type_name, value)

    def data_ptr(self) -> int:
        return ctypes.addressof(self.memory)

    def __getitem__(self, piece: slice) -> "Tensor":
        return self.view(self.shape if piece.stop is None else [piece.stop])

    def view(self, shape: list[int]) -> "Tensor":
        made = Tensor(shape, peer_device.type_of(self))
        made.memory = self.memory
        return made

    @property
    def T(self) -> "Tensor":
        made = self.view(self.shape[::-1])
        made.strides = self.strides[::-1]
        return made

    def at(self, index: tuple[int, ...]) -> float:
        """Modes that are not there are the first ones, and are repeated."""
        own = index[len(index) - len(self.shape) :]
        place = sum(i * stride for i, stride in zip(own, self.strides, strict=True))
        return get(self.data_ptr(), place, peer_device.type_of(self))

    def list(self) -> list[float]:
        return [self.at(index) for index in itertools.product(*map(range, self.shape))]

    def map(self, of: Callable[[float], float]) -> "Tensor":
        return Tensor(self.shape, peer_device.type_of(self), [of(value) for value in self.list()])

    def clone(self) -> "Tensor":
        return self.map(lambda value: value)

    def zero_(self) -> None:
        for i in range(math.prod(self.shape)):
            put(self.data_ptr(), i, peer_device.type_of(self), 0)

    def __sub__(self, other: "Tensor") -> "Tensor":
        values = [x - y for x, y in zip(self.list(), other.list(), strict=True)]
        return Tensor(self.shape, peer_device.type_of(self), values)

    def abs(self) -> "Tensor":
        return self.map(abs)

    def max(self) -> "Tensor":
        return Tensor([], peer_device.type_of(self), [max(self.list())])

    def item(self) -> float:
        return self.at(())


def add(x: Tensor, y: Tensor, out: Tensor | None = None) -> Tensor:
    shape = max(x.shape, y.shape, key=len)
    values = [x.at(index) + y.at(index) for index in itertools.product(*map(range, shape))]
    made = Tensor(shape, peer_device.type_of(x), values)
    if out is None:
        return made
    assert out.shape == shape
    ctypes.memmove(out.memory, made.memory, len(made.memory))
    return out


def reduction(of: Callable[[list[float]], float]) -> Callable[[Tensor, tuple[int, ...]], Tensor]:
    def reduce(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
        groups: dict[tuple, list[float]] = {}
        for index in itertools.product(*map(range, tensor.shape)):
            kept = tuple(i for axis, i in enumerate(index) if axis not in axes)
            groups.setdefault(kept, []).append(tensor.at(index))
        shape = [extent for axis, extent in enumerate(tensor.shape) if axis not in axes]
        return Tensor(shape, peer_device.type_of(tensor), [of(groups[kept]) for kept in sorted(groups)])

    return reduce


def framework() -> types.SimpleNamespace:
    """PyTorch and CuPy, whose own names do not hurt each other."""
    return types.SimpleNamespace(
        Tensor=Tensor,
        add=add,
        sum=reduction(sum),
        amax=reduction(max),
        tanh=lambda a: a.map(math.tanh),
        relu=lambda a: a.map(lambda value: max(value, 0.0)),
        maximum=lambda a, least: a.map(lambda value: max(value, least)),
        equal=lambda x, y: x.shape == y.shape and x.list() == y.list(),
        from_dlpack=lambda tensor: tensor,
        cuda=types.SimpleNamespace(
            ExternalStream=lambda stream: contextlib.nullcontext(stream), empty_cache=lambda: None
        ),
    )


class FakeDevice(peer_device.TorchDevice):
    stream = STREAM

    def __init__(self) -> None:
        self.torch = framework()
        self.seed = 0

    def sixteenths(self, count: int, type_name: str) -> Tensor:
        self.seed += 1
        return Tensor([count], type_name, [(2 * ((i * i + self.seed * i) % 16) - 15) / 16 for i in range(count)])

    def empty(self, count: int, type_name: str = "uint8") -> Tensor:
        return Tensor([count], type_name)

    def nanoseconds(self, moved_bytes: int, work: Callable[[], object]) -> float:
        work()
        return float(moved_bytes)

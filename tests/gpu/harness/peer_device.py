"""Memory and clocks for the peers, by PyTorch."""

import json
import statistics
import time
from collections.abc import Callable

REPETITIONS, SLOW_REPETITIONS = 7, 3
SLOW_SECONDS = 0.010
L2_BYTES = 60 << 20  # at least that of the devices of today
WASHES = 4  # as in bench_device.cc
UNIT_ROUNDOFF = {"float16": 2**-11, "float32": 2**-24, "float64": 2**-53, "complex64": 2**-24}
# Of two results that are both right: see contraction_check.h.
ALLOWED = 16

# Queues one run, and gives its result: PyTorch's tensor or one that shares its memory as those do.
Work = Callable[[], object]


def print_row(**row: object) -> None:
    print(json.dumps({"part": "peers", **row}), flush=True)


class TorchDevice:
    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no device")
        self.torch, self.version = torch, torch.__version__
        # float32 means float32, whatever the environment says of TF32.
        torch.set_float32_matmul_precision("highest")
        self.flush = torch.empty(2 * L2_BYTES, dtype=torch.uint8, device="cuda")

    def buffer(self, count: int, type_name: str) -> object:
        """Random numbers, of which views are taken."""
        kind = getattr(self.torch, type_name)
        return self.torch.rand(count, device="cuda", dtype=self.torch.float32).to(kind)

    def numbers(self, count: int, type_name: str) -> object:
        """Random numbers from [-1, 1), to the last bit of their type; complex ones have two each."""
        kind = getattr(self.torch, type_name)
        numbers = self.torch.empty(count, device="cuda", dtype=kind)
        parts = self.torch.view_as_real(numbers) if kind.is_complex else numbers
        parts.uniform_(-1, 1)
        return numbers

    def sixteenths(self, count: int, type_name: str) -> object:
        """Odd sixteenths from -15/16 to 15/16: their sums are exact in every order, as numbers.h says."""
        kind = getattr(self.torch, type_name)
        numbers = self.torch.randint(-8, 8, (count,), device="cuda", dtype=self.torch.int8)
        return numbers.to(kind).mul_(2).add_(1).div_(16)

    def empty(self, count: int, type_name: str = "uint8") -> object:
        return self.torch.empty(count, device="cuda", dtype=getattr(self.torch, type_name))

    @property
    def stream(self) -> int:
        """The address of the one that PyTorch uses."""
        return self.torch.cuda.current_stream().cuda_stream

    def tensor(self, array: object) -> object:
        """PyTorch's tensor of an array that may be another framework's."""
        return array if isinstance(array, self.torch.Tensor) else self.torch.from_dlpack(array)

    def synchronize(self) -> None:
        self.torch.cuda.synchronize()

    def nanoseconds(self, moved_bytes: int, work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        self.synchronize()
        repetitions = SLOW_REPETITIONS if time.perf_counter() - start > SLOW_SECONDS else REPETITIONS
        work()
        pairs = []
        for _ in range(repetitions):
            if moved_bytes < WASHES * L2_BYTES:
                self.flush.fill_(90)
            pair = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
            pair[0].record()
            work()
            pair[1].record()
            pairs.append(pair)
        self.synchronize()
        return statistics.median(1e6 * first.elapsed_time(last) for first, last in pairs)


def type_of(tensor: object) -> str:
    return str(tensor.dtype).rsplit(".", 1)[-1]


def differs(device: TorchDevice, result: object, first: object, magnitude: float) -> bool:
    """True when not both results can be right: sums of terms of that magnitude, which is 0 when they are exact."""
    if magnitude == 0:
        return not device.torch.equal(result, first)
    most = (result - first).abs().max().item()
    return not most <= ALLOWED * UNIT_ROUNDOFF[type_of(result)] * magnitude


def time_work(
    device: TorchDevice, prepare: Callable[[], Work], moved_bytes: int, first: list, magnitude: float
) -> dict:
    """The time of one peer, or what it raised: the others go on. `first` gets the first one's result."""
    try:
        work = prepare()
        result = device.tensor(work())
        if not first:
            first.append(result.clone())
        elif differs(device, result, first[0], magnitude):
            return {"refused": "its result is another one"}
        del result
        return {"ns": device.nanoseconds(moved_bytes, work)}
    except Exception as error:  # noqa: BLE001
        return {"refused": first_line(error)}


def first_line(error: Exception) -> str:
    """For the row of a case that raised it."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]

"""Memory and clocks for the peers, by PyTorch."""

import json
import statistics
import time
from collections.abc import Callable

REPETITIONS, SLOW_REPETITIONS = 7, 3
SLOW_SECONDS = 0.010
L2_BYTES = 60 << 20  # at least that of the devices of today
WASHES = 4  # as in bench_device.cc


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


def first_line(error: Exception) -> str:
    """For the row of a case that raised it."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]

#!/usr/bin/env python3
"""PyTorch, CuPy, cuTENSOR and, through PyTorch, cuBLAS on the cases of gpu_bench, on device 0.

    peers.py --data=FOLDER [--seconds=N]

Prints one JSON object a line: the case, the peer and its time in nanoseconds, timed as gpu_bench does. A peer that is
not there has a line that says why, and so has each case that it cannot do.
"""

import argparse
import pathlib
import sys
import time
from collections.abc import Callable
from types import ModuleType

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from harness import suites  # noqa: E402
from harness.contraction_peers import run_contractions  # noqa: E402
from harness.cutensor import Cutensor, CutensorError, find_library  # noqa: E402
from harness.operation_peers import run_operations  # noqa: E402
from harness.peer_device import TorchDevice, first_line, print_row, type_of  # noqa: E402


def torch_permutation(device: TorchDevice, case: suites.PermutationCase, a: object, d: object) -> Callable[[], object]:
    shape, axes = case.last_mode_fastest()
    source = a[: case.elements].view(shape).permute(axes)
    target = d[: case.elements].view([shape[axis] for axis in axes])
    return lambda: target.copy_(source)


def cupy_permutation(device: TorchDevice, case: suites.PermutationCase, a: object, d: object) -> Callable[[], object]:
    import cupy

    shape, axes = case.last_mode_fastest()
    source = cupy.from_dlpack(a[: case.elements]).reshape(shape).transpose(axes)
    target = cupy.from_dlpack(d[: case.elements]).reshape([shape[axis] for axis in axes])
    stream = cupy.cuda.ExternalStream(device.stream)

    def run() -> None:
        with stream:
            cupy.copyto(target, source)

    return run


class CutensorPermutations:
    def __init__(self, cutensor: Cutensor):
        self.cutensor = cutensor

    def __call__(self, device: TorchDevice, case: suites.PermutationCase, a: object, d: object) -> Callable[[], object]:
        plan = self.cutensor.permutation(case.extents, case.perm, type_of(a))
        stream = device.stream
        return lambda: plan.run(a.data_ptr(), d.data_ptr(), stream)


def time_permutation(
    device: TorchDevice, prepare: Callable, case: suites.PermutationCase, a: object, d: object
) -> dict:
    """The time of one peer, or what it raised: the others go on."""
    try:
        work = prepare(device, case, a, d)
        d[: case.elements].zero_()
        return {"ns": device.nanoseconds(2 * case.elements * a.element_size(), work)}
    except Exception as error:  # noqa: BLE001
        return {"refused": first_line(error)}


def run_permutations(
    device: TorchDevice, peers: dict[str, Callable], data: pathlib.Path, end: float
) -> tuple[int, int]:
    cases = suites.permutations(data)
    most = max(case.elements for case in cases)
    buffers = {name: (device.buffer(most, name), device.buffer(most, name)) for name in suites.TYPES}
    done = left_out = 0
    for case in cases:
        for type_name, (a, d) in buffers.items():
            first = None  # what the first peer made of a
            for peer, prepare in peers.items():
                if time.monotonic() >= end:
                    left_out += 1
                    continue
                result = time_permutation(device, prepare, case, a, d)
                if "ns" in result:
                    if first is None:
                        first = d[: case.elements].clone()
                    elif not device.torch.equal(d[: case.elements], first):
                        result = {"refused": "its result is another one"}
                print_row(of_part="permutation", peer=peer, suite=case.suite, id=case.id, type=type_name, **result)
                done += 1
    return done, left_out


def find_cupy() -> ModuleType | None:
    try:
        import cupy
    except ImportError as error:
        print_row(peer="cupy", skipped=str(error))
        return None
    print_row(peer="cupy", version=cupy.__version__)
    return cupy


def find_cutensor() -> Cutensor | None:
    path = find_library()
    if path is None:
        print_row(peer="cutensor", skipped="there is no libcutensor.so.2; $CUTENSOR_LIBRARY can name one")
        return None
    try:
        cutensor = Cutensor(path)
    except (OSError, AttributeError, CutensorError) as error:
        print_row(peer="cutensor", skipped=str(error))
        return None
    print_row(peer="cutensor", version=cutensor.version)
    return cutensor


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=3600)
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        device = TorchDevice()
    except (ImportError, RuntimeError) as error:
        # Memory and clocks are PyTorch's for every peer.
        for peer in ("torch", "cupy", "cutensor"):
            print_row(peer=peer, skipped=f"no PyTorch with a device: {error}")
        return 0
    print_row(peer="torch", version=device.version)
    cupy, cutensor = find_cupy(), find_cutensor()
    permutations: dict[str, Callable] = {"torch": torch_permutation}
    if cupy is not None:
        permutations["cupy"] = cupy_permutation
    if cutensor is not None:
        permutations["cutensor"] = CutensorPermutations(cutensor)
    # Each has what those before it leave of the time, up to its share.
    counts = [
        run_operations(device, cupy, cutensor, start + 0.2 * arguments.seconds),
        run_contractions(device, cupy, cutensor, arguments.data, start + 0.6 * arguments.seconds),
        run_permutations(device, permutations, arguments.data, start + arguments.seconds),
    ]
    print_row(cases_done=sum(done for done, _ in counts), cases_left_out=sum(left for _, left in counts))
    if cutensor is not None:
        cutensor.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What views cost: their creation, and reading and writing them where they have no positive strides.

Prints a table: case, milliseconds of a permutation that reads or writes 100 MB
through the view, and their ratio to those of the same permutation without it.
Two passes over memory, gathering and the permutation, are a ratio of 2.

    python3 views.py --server build/release/bin/tensord --threads 2
"""

import argparse
import os
import time

import numpy as np
import tensord

ROWS, COLUMNS = 3600, 3500  # of float64


def best_seconds(function, repetitions):
    times = []
    for _ in range(repetitions):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)


def cases(session):
    """Name, a permutation that goes through a view, and the one that it is compared to."""
    matrix = session.upload(np.random.default_rng(0).random((ROWS, COLUMNS)))
    image = session.upload(np.ones((ROWS, COLUMNS * 2 // 3, 3), np.float32))
    out = session.create((ROWS, COLUMNS), "float64")

    def copies(tensor):
        result = session.create(tensor.shape, tensor.dtype)
        modes = range(tensor.ndim)
        return lambda: session.permute(tensor, modes, modes, out=result)

    def reads(view, like):
        return copies(view), copies(like)

    merge = [[tensord.transforms.place(tensord.transforms.Merge(), (0, 1), 0)]]
    yield "rows backwards", *reads(matrix[::-1], matrix)
    yield "columns backwards", *reads(matrix[:, ::-1], matrix)
    yield "both, transposed", *reads(matrix[::-1, ::-1].T, matrix)
    yield "padded by 1", *reads(matrix.pad(1), matrix)
    yield "image mirrored", *reads(image[:, ::-1], image)
    yield "image, channels backwards", *reads(image[:, :, ::-1], image)
    yield "padded and merged", *reads(matrix.pad(1).view(merge), matrix.reshape(-1))
    backwards = out[::-1]
    yield (
        "written backwards",
        lambda: session.permute(matrix, "ij", "ij", out=backwards),
        lambda: session.permute(matrix, "ij", "ij", out=out),
    )
    for shape, width in ((ROWS, COLUMNS), 1), ((ROWS * COLUMNS // 2, 2), ((0, 0), (1, 1))):
        a = session.upload(np.ones(shape))
        plain = session.create(shape, "float64")
        padded = session.permute(a, "ij", "ij", pad_width=width)
        yield (
            f"output of {shape} padded by {width}",
            lambda a=a, d=padded, w=width: session.permute(a, "ij", "ij", pad_width=w, out=d),
            lambda a=a, d=plain: session.permute(a, "ij", "ij", out=d),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", help="the program; else $TENSORD_SERVER or that of the PATH")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repetitions", type=int, default=7)
    args = parser.parse_args()
    if args.server:
        os.environ["TENSORD_SERVER"] = os.path.abspath(args.server)
    with tensord.serve(threads=args.threads) as address, tensord.connect(address) as session:
        print("| case | ms | ratio |\n| --- | ---: | ---: |")
        for name, through_view, directly in cases(session):
            seconds = best_seconds(through_view, args.repetitions)
            reference = best_seconds(directly, args.repetitions)
            print(f"| {name} | {1e3 * seconds:.1f} | {seconds / reference:.2f} |")
        tensor = session.create((8, 8), "float32")
        creation = best_seconds(lambda: tensor[::-1, 1:], 300)
        call = best_seconds(lambda: tensor.state, 300)
        print(f"\nA view takes {1e6 * creation:.0f} us, a call that only looks {1e6 * call:.0f} us.")


if __name__ == "__main__":
    main()

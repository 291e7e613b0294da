#!/usr/bin/env python3
"""Draws random_contractions.csv: python3 random_contractions.py > random_contractions.csv

The rules are those of section 3.4 of A.-P. Hynninen, D. I. Lyakh, "cuTT: A High-Performance Tensor Transpose Library
for CUDA Compatible GPUs" (2017), whose own 9306 contractions are not published. The same script gives the same file.
"""

import math

COUNT = 64
SEED = 20170501
MOST_MODES = 8  # of a tensor
LARGE_MODES = 4  # at most, of an input
SMALL_EXTENT = 8
PATTERNS = 64  # tried of a configuration
ELEMENTS_F32, ELEMENTS_F64 = 150_000_000, 75_000_000

HEADER = f"""\
# {COUNT} random contractions by the rules of the cuTT paper, section 3.4; its own 9306 are not published. Made by random_contractions.py.
# By the paper: tensors of up to {MOST_MODES} modes; a random pattern of each configuration (numbers of contracted and free modes of the inputs), at least
#   one transposition being needed for a matrix product; the first {LARGE_MODES} modes of an input are large, others have extents up to {SMALL_EXTENT}; the largest
#   tensor is just below {ELEMENTS_F32 // 10**6}M elements of float32, {ELEMENTS_F64 // 10**6}M of float64.
# Where it is silent: one pattern a configuration; at least one contracted and one free mode; a mode is large when it is among the first {LARGE_MODES} of
#   every input that has it; large extents grow together, in ratios drawn from 1 to 3; small ones are drawn from 2 to {SMALL_EXTENT}.
# Columns and conventions as in tccg48.csv; m, n, k and ai of extents_f32.
"""


class Draws:
    """Random numbers that depend on nothing but the seed (the finaliser of SplitMix64)."""

    def __init__(self, seed: int):
        self.state = seed

    def below(self, count: int) -> int:
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        x = self.state
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
        return (x ^ x >> 31) % count

    def shuffled(self, items: list) -> list:
        rest, result = list(items), []
        while rest:
            result.append(rest.pop(self.below(len(rest))))
        return result


def configurations() -> list[tuple[int, int, int]]:
    """Numbers of modes: contracted, free of the left input, free of the right one."""
    counts = range(MOST_MODES + 1)
    return [
        (k, m, n)
        for k in counts
        for m in counts
        for n in counts
        if k >= 1 and m + n >= 1 and max(k + m, k + n, m + n) <= MOST_MODES
    ]


def is_matrix_product(d: str, a: str, b: str) -> bool:
    """True when the tensors are matrices as they lie, transposed or not."""

    def split(tensor: str, other: str) -> tuple[str, str] | None:
        """The modes that `other` has and the rest, when either group lies in one piece."""
        inside = "".join(mode for mode in tensor if mode in other)
        outside = "".join(mode for mode in tensor if mode not in other)
        return (inside, outside) if tensor in (inside + outside, outside + inside) else None

    of_a, of_b, of_d = split(a, b), split(b, a), split(d, a)
    if of_a is None or of_b is None or of_d is None:
        return False
    return of_a[0] == of_b[0] and of_a[1] == of_d[0] and of_b[1] == of_d[1]


def draw_pattern(draws: Draws, k: int, m: int, n: int) -> tuple[str, str, str] | None:
    """Labels of d, a and b, first mode fastest; None when all patterns tried are matrix products."""
    letters = "abcdefghijklmnop"
    d, contracted = letters[: m + n], list(letters[m + n : m + n + k])
    for _ in range(PATTERNS):
        free = draws.shuffled(list(d))
        a = "".join(draws.shuffled(free[:m] + contracted))
        b = "".join(draws.shuffled(free[m:] + contracted))
        if not is_matrix_product(d, a, b):
            return d, a, b
    return None


def volume(tensor: str, extents: dict[str, int]) -> int:
    return math.prod(extents[mode] for mode in tensor)


def scaled(tensors: tuple[str, str, str], ratios: dict[str, int], small: dict[str, int], target: int) -> dict[str, int]:
    """Extents with which the largest tensor has just less than `target` elements."""

    def at(scale: int) -> dict[str, int]:
        return {mode: max(2, ratio * scale >> 6) for mode, ratio in ratios.items()} | small

    def fits(extents: dict[str, int]) -> bool:
        return max(volume(tensor, extents) for tensor in tensors) <= target

    least, most = 0, 64 * target
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(at(middle)) else (least, middle)
    extents = at(least)
    largest = max(tensors, key=lambda tensor: volume(tensor, extents))
    grown = True
    while grown:
        grown = False
        for mode in sorted(set(largest) & set(ratios), key=lambda mode: (-extents[mode], mode)):
            extents[mode] += 1
            if fits(extents):
                grown = True
            else:
                extents[mode] -= 1
    return extents


def row(number: int, draws: Draws, tensors: tuple[str, str, str]) -> str:
    d, a, b = tensors
    modes = sorted(set(a + b))
    large = [mode for mode in modes if all(mode in tensor[:LARGE_MODES] for tensor in (a, b) if mode in tensor)]
    ratios = {mode: 8 + draws.below(17) for mode in large}
    small = {mode: 2 + draws.below(SMALL_EXTENT - 1) for mode in modes if mode not in large}
    f32, f64 = (scaled(tensors, ratios, small, target) for target in (ELEMENTS_F32, ELEMENTS_F64))
    m, n, k = (
        math.prod(f32[mode] for mode in modes if (mode in d, mode in a, mode in b) == where)
        for where in ((True, True, False), (True, False, True), (False, True, True))
    )
    intensity = 2 * m * n * k / (4 * (m * n + m * k + n * k))
    text = [" ".join(f"{mode}:{extents[mode]}" for mode in modes) for extents in (f32, f64)]
    gflop = [2 * math.prod(extents.values()) / 1e9 for extents in (f32, f64)]
    return (
        f'{number},random,{d}-{a}-{b},"{a[::-1]},{b[::-1]}->{d[::-1]}",{text[0]},{text[1]},'
        f"{gflop[0]:.3f},{gflop[1]:.3f},{intensity:.1f},{m},{n},{k}"
    )


def text() -> str:
    draws = Draws(SEED)
    lines = [HEADER + "id,class,tccg,einsum_rowmajor,extents_f32,extents_f64,gflop_f32,gflop_f64,ai_f32,m,n,k"]
    for configuration in draws.shuffled(configurations()):
        tensors = draw_pattern(draws, *configuration)
        if tensors is not None and len(lines) <= COUNT:
            lines.append(row(len(lines), draws, tensors))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")

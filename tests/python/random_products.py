"""Random Einstein sums, of everything that NumPy takes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from bounds import assert_within_bound, widened

LETTERS = "abcDEf"
LARGEST = 4


class RandomProduct(NamedTuple):
    """Subscripts and the shapes of their operands."""

    subscripts: str
    shapes: list[tuple[int, ...]]


@st.composite
def products(
    draw, most_operands: int = 4, stretched: bool = True, hyper: bool = True
) -> RandomProduct:
    """Products with repeated labels, ellipses and stretched extents.

    Args:
        most_operands: Of a product.
        stretched: Whether extents of 1 go with others.
        hyper: Whether there are ellipses, and labels of more than two places.
    """
    extents = {letter: draw(st.integers(0, LARGEST)) for letter in LETTERS}
    batch = draw(st.lists(st.integers(1, 3), max_size=2)) if hyper else []
    left = {letter: 2 for letter in LETTERS}
    inputs, shapes = [], []
    for _ in range(draw(st.integers(1, most_operands))):
        labels = draw(st.lists(st.sampled_from(LETTERS), max_size=3))
        if not hyper:
            labels = [each for each in labels if take(left, each)]
        ones = draw(st.sets(st.sampled_from(LETTERS), max_size=1)) if stretched else ()
        shape = [1 if label in ones else extents[label] for label in labels]
        if batch and draw(st.booleans()):
            tail = batch[draw(st.integers(0, len(batch))) :]
            tail = [n if draw(st.integers(0, 3)) else 1 for n in tail]
            at = draw(st.integers(0, len(labels)))
            labels[at:at] = ["..."]
            shape[at:at] = tail
        inputs.append("".join(labels))
        shapes.append(tuple(shape))
    subscripts = ",".join(inputs)
    used = sorted({label for label in subscripts if label.isalpha()})
    if draw(st.booleans()):
        kept = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        if "..." in subscripts:
            at = draw(st.integers(0, len(kept)))
            kept[at:at] = ["..."]
        subscripts += "->" + "".join(kept)
    return RandomProduct(subscripts, shapes)


def take(left: dict[str, int], label: str) -> bool:
    """Whether a label may occur once more."""
    left[label] -= 1
    return left[label] >= 0


def assert_product_agrees(
    result: np.ndarray, subscripts: str, arrays: list[np.ndarray], scale: float = 1
) -> None:
    """Checks a result against numpy.einsum, its dtype too.

    Args:
        result: Of any order of contractions.
        subscripts: As NumPy takes them.
        arrays: The operands.
        scale: A factor.
    """
    dtype = np.result_type(*arrays)
    assert result.dtype == dtype
    wide = [widened(array.astype(dtype)) for array in arrays]
    with np.errstate(over="ignore"):  # Integers wrap.
        expected = np.asarray(
            np.einsum(subscripts, *wide) * np.array(scale, wide[0].dtype)
        )
        magnitude = np.einsum(subscripts, *map(np.abs, wide)) * abs(scale)
    # Each index is summed once, each factor multiplied once, and between these the
    # results of steps are rounded.
    ones = [np.ones(array.shape, np.int64) for array in arrays]
    summed = np.max(np.einsum(subscripts, *ones), initial=1)
    terms = int(summed) + 2 * len(arrays)
    assert_within_bound(
        result,
        expected.astype(wide[0].dtype),
        magnitude,
        terms,
        step_count=2 * len(arrays),
    )

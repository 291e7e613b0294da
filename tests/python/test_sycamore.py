"""The trees that are kept for amplitudes of Sycamore, counted anew."""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path

import opt_einsum
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TREES = BENCHMARKS / "results" / "sycamore"

spec = importlib.util.spec_from_file_location("sycamore", BENCHMARKS / "sycamore.py")
assert spec is not None and spec.loader is not None
sycamore = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sycamore)


@pytest.mark.parametrize("cycles", sycamore.PUBLISHED)
def test_kept_trees_take_less_than_published_schemes(cycles):
    tensors = sycamore.amplitude(cycles)
    tree = sycamore.load(TREES, cycles)
    multiplications, largest = sycamore.count(tensors, tree["steps"], tree["sliced"])
    unsliced, sliced = sycamore.PUBLISHED[cycles]
    assert largest <= 2**29
    assert math.log10(multiplications) < (sliced or unsliced)


def test_trees_are_counted_as_opt_einsum_counts():
    tensors = sycamore.amplitude(2)
    rng = random.Random(2)
    nodes, steps = list(range(len(tensors))), []
    while len(nodes) > 1:
        steps.append((nodes.pop(rng.randrange(len(nodes))), nodes.pop()))
        nodes.append(len(tensors) + len(steps) - 1)
    multiplications, largest = sycamore.count(tensors, steps)
    terms = [[opt_einsum.get_symbol(index) for index in tensor] for tensor in tensors]
    equation = ",".join(map("".join, terms)) + "->"
    shapes = [(2,) * len(tensor) for tensor in tensors]
    path = opt_einsum.paths.ssa_to_linear(steps)
    _, info = opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=path)
    assert largest == info.largest_intermediate
    # It counts what is summed twice.
    assert info.opt_cost / 2 <= multiplications <= info.opt_cost


def test_what_is_no_tree_is_refused():
    tensors = sycamore.amplitude(10)
    tree = sycamore.load(TREES, 10)
    for steps in (
        tree["steps"][:-1],
        [*tree["steps"][:-1], tree["steps"][0]],
        [[0, 0], *tree["steps"][1:]],
    ):
        with pytest.raises(ValueError, match="step"):
            sycamore.count(tensors, steps, tree["sliced"])

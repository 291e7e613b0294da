"""What is known of an operation before it is done."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensord._elementwise import COMPARISONS
from tensord._operations import Input
from tensord._operators import BINARY_OPERATORS
from tensord._settings import Options
from tensord._specs import TensorSpec
from tensord._subscripts import Modes, mode_labels
from tensord._tensor_handle import TensorHandle
from tensord.v1 import compute_pb2

_OF_THREE = (BINARY_OPERATORS["where"], BINARY_OPERATORS["take"])
_PACKAGE = str(Path(__file__).parent)
_PASSING_ON = f"{os.sep}autoray{os.sep}"


def expected_result(
    inputs: Mapping[str, Input],
    modes_d: Modes,
    options: Options,
    fields: Mapping[str, Any],
) -> TensorSpec | None:
    """Returns what the result will be like; None if only the server knows."""
    out = options.get("out")
    if isinstance(out, TensorHandle):
        return TensorSpec(out.shape, out.dtype)
    extents: dict[int, int] = {}
    dtype_of: dict[str, np.dtype] = {}
    for name, (tensor, modes, _) in inputs.items():
        if tensor is None:
            continue
        if modes is None or not isinstance(tensor, (TensorHandle, np.ndarray)):
            return None
        labels = mode_labels(modes, f"modes_{name}")
        if len(labels) != len(tensor.shape):
            return None
        extents.update(zip(labels, tensor.shape))
        dtype_of[name] = tensor.dtype
    if fields.get("op_abc") in _OF_THREE:  # What b is, the result never is.
        dtype_of.pop("b", None)
    dtype = options.get("dtype") or _dtype_by_operator(fields) or dtype_of.get("c")
    if dtype is None and len(set(dtype_of.values())) == 1:
        dtype = next(iter(dtype_of.values()))
    labels = mode_labels(modes_d, "modes_d")
    if "structure" in fields and "b" not in inputs:
        add_own_extents(extents, labels)
    if dtype is None or any(label not in extents for label in labels):
        return None
    shape = [extents[label] for label in labels]
    padding = fields.get("padding")
    if padding is not None:
        margins = zip(shape, padding.before, padding.after, strict=True)
        shape = [extent + before + after for extent, before, after in margins]
    return TensorSpec(tuple(shape), dtype)


def add_own_extents(extents: dict[int, int], labels: Sequence[int]) -> None:
    """Adds the extents of an inverse's or exponential's own modes.

    They are those of the operand's modes that it lacks.

    Args:
        extents: Those of the operand, by its labels, in their order.
        labels: Those of the result.
    """
    lacking = [extents[label] for label in extents if label not in labels]
    own = [label for label in labels if label not in extents]
    extents.update(zip(own, lacking))


def expected_factors(request: Any, a: Any) -> list[tuple[str, TensorSpec]]:
    """Returns what the results of a factorization will be like, by their fields.

    Args:
        request: What is asked for.
        a: The operand, which has a shape and a dtype.
    """
    extent_of = dict(zip(request.a.modes, a.shape))
    has_values = request.HasField("values")
    fields = ["q"] + ["values"] * has_values + ["r"] * request.HasField("r")
    if request.method == compute_pb2.FACTORIZATION_METHOD_EIGH:
        fields = ["values", "q"]
    labels = {field: list(getattr(request, field).modes) for field in fields}
    columns = labels.get("r", [])
    rows = [each for each in labels["q"] if each in extent_of and each not in columns]
    columns = [each for each in extent_of if each not in labels["q"]]
    inner = _product(extent_of, columns)
    if "r" in labels:
        inner = min(inner, _product(extent_of, rows))
        if request.truncation.HasField("rank"):
            inner = min(inner, request.truncation.rank)
    real = np.dtype(f"f{a.dtype.itemsize // 2}") if a.dtype.kind == "c" else a.dtype
    return [
        (
            field,
            TensorSpec(
                tuple(extent_of.get(label, inner) for label in labels[field]),
                real if field == "values" else a.dtype,
            ),
        )
        for field in fields
    ]


def _product(extent_of: Mapping[int, int], labels: list[int]) -> int:
    return math.prod(extent_of[label] for label in labels)


def _dtype_by_operator(fields: Mapping[str, Any]) -> np.dtype | None:
    """The dtype that an operator has results of, whatever its operands."""
    if "along" in fields and fields["along"].sorting:
        return np.dtype(np.int64)
    compared = fields.get("op_abc") in map(BINARY_OPERATORS.get, COMPARISONS)
    return np.dtype(np.bool_) if compared else None


def place_of_caller() -> tuple[str, int]:
    """Returns the file and line that called this package, by way of autoray or not."""
    frame = inspect.currentframe()
    while frame and (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or _PASSING_ON in frame.f_code.co_filename
    ):
        frame = frame.f_back
    if frame is None:
        return "an unknown place", 0
    return frame.f_code.co_filename, frame.f_lineno

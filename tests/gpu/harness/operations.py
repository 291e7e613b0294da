"""The element-wise operations and reductions that gpu_bench measures, for the peers: the same cases, the same order."""

import math
from dataclasses import dataclass, field

TYPES = {"float32": 4, "float64": 8, "float16": 2}  # in their order there


@dataclass
class OperationCase:
    """Labels are modes; the first mode is the fastest."""

    name: str
    d: str
    inputs: tuple[str, ...]  # the labels of a and of what follows it
    extents: dict[str, int]  # by label

    def shape(self, labels: str) -> list[int]:
        """Last mode fastest."""
        return [self.extents[label] for label in reversed(labels)]

    def elements(self, labels: str) -> int:
        return math.prod(self.shape(labels))

    def bytes(self, type_name: str) -> int:
        """Read and written."""
        return TYPES[type_name] * sum(map(self.elements, (*self.inputs, self.d)))


@dataclass
class ElementwiseCase(OperationCase):
    """d = unary(a) + [b +] c."""

    d: str = "ij"
    inputs: tuple[str, ...] = ("ij", "ij")
    extents: dict[str, int] = field(default_factory=lambda: {"i": 12288, "j": 12288})
    unary: str = "identity"  # or "relu", "tanh"

    @property
    def is_transposed(self) -> bool:
        return self.inputs[0] == self.d[::-1]


@dataclass
class ReductionCase(OperationCase):
    """Reduces a over the modes that d lacks."""

    inputs: tuple[str, ...] = ("ijk",)
    extents: dict[str, int] = field(default_factory=lambda: {"i": 512, "j": 1024, "k": 512})
    op: str = "sum"  # or "max"

    @property
    def axes(self) -> tuple[int, ...]:
        """Those that are reduced, for frameworks whose last mode is the fastest."""
        return tuple(axis for axis, label in enumerate(reversed(self.inputs[0])) if label not in self.d)


# As in elementwise_part.cc and reduction_part.cc.
ELEMENTWISE = [
    ElementwiseCase("a+c"),
    ElementwiseCase("a+b+c", inputs=("ij", "ij", "ij")),
    ElementwiseCase("transposed a+c", inputs=("ji", "ij")),
    ElementwiseCase("transposed a+c, short fastest", inputs=("ji", "ij"), extents={"i": 6, "j": 12288 * 12288 // 6}),
    ElementwiseCase("broadcast a+c", inputs=("i", "ij")),
    ElementwiseCase("relu(a)+c", unary="relu"),
    ElementwiseCase("tanh(a)+c", unary="tanh"),
]
REDUCTION = [
    ReductionCase("sum of all", ""),
    ReductionCase("sum over the fastest", "jk"),
    ReductionCase("sum over the middle", "ik"),
    ReductionCase("sum over the slowest", "ij"),
    ReductionCase("sum over fastest and slowest", "j"),
    ReductionCase("sum over the middle, few left", "ik", extents={"i": 16, "j": 1 << 22, "k": 4}),
    ReductionCase("sum over a short fastest", "jk", extents={"i": 6, "j": 4096, "k": 10923}),
    ReductionCase("max over the fastest", "jk", op="max"),
    ReductionCase("max over the slowest", "ij", op="max"),
]

"""Products of a program, and the trees of their contractions."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Union

from tensord import _trees as trees
from tensord._messages import nested
from tensord._trees import TreeNode


@dataclasses.dataclass(frozen=True)
class ProgramProduct:
    """A product of three factors or more, and the order in which it is contracted.

    `str` draws its tree, `svg()` and `save()` do, too.

    Attributes:
        statement: Which statement it belongs to, from 0.
        nodes: Factors first, then what steps make; the last is the product.
        sliced: Labels whose values are taken one by one.
        slice_count: How often all steps are carried out.
        method: How the order was found: "optimal", "greedy", "random_greedy",
            "partition" or "given".
        flops: Of all slices.
        largest: Elements of the largest result of a step, in one slice.
        symbolic_cost: With `costs`, multiplications in terms of their variable, e.g.
            "2*χ^4 + 10*χ^2"; else "".
    """

    statement: int
    sliced: tuple[str, ...]
    slice_count: int
    method: str
    flops: float
    largest: float
    symbolic_cost: str
    nodes: tuple[TreeNode, ...] = nested(TreeNode)

    @property
    def path(self) -> list[tuple[int, ...]]:
        """The order as opt_einsum writes it, for `optimize=`."""
        factors = sum(not node.children for node in self.nodes)
        left = list(range(factors))
        path = []
        for number in range(factors, len(self.nodes)):
            children = self.nodes[number].children
            path.append(tuple(sorted(left.index(child) for child in children)))
            left = [node for node in left if node not in children] + [number]
        return path

    @property
    def heading(self) -> str:
        """What stands above the tree."""
        sliced = ""
        if self.slice_count > 1:
            sliced = f", {self.slice_count} slices over {', '.join(self.sliced)}"
        cost = f", {self.symbolic_cost} multiplications" if self.symbolic_cost else ""
        return (
            f"statement {self.statement}: {self.method}, {self.flops:.4g} flops, "
            f"largest intermediate {self.largest:.4g} elements{sliced}{cost}"
        )

    def svg(self) -> str:
        """Returns the tree as an SVG picture."""
        return trees.svg([self])

    def save(self, path: str | os.PathLike[str]) -> None:
        """As `ProgramExplanation.save`, for this product."""
        trees.save([self], path)

    def __str__(self) -> str:
        return trees.text(self)


PathStart = Union[ProgramProduct, Sequence[Sequence[int]]]
"""What a search for an order goes on from."""


class Explained:
    """What `session.explain` returns has all of this, one operation or many.

    `print` shows `text`. Notebooks draw the trees.

    Attributes:
        products: Whose trees are drawn; without any, that is `text`.
        text: What would run, for people.
    """

    products: tuple[ProgramProduct, ...]
    text: str

    def svg(self) -> str:
        """Returns the trees of all products as an SVG picture."""
        return trees.svg(self.products, self.text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draws the trees of all products into a file.

        Args:
            path: Ends with `.svg`, `.png`, which takes matplotlib, or `.txt`.

        Raises:
            InvalidArgument: It ends otherwise (`FORMAT_UNKNOWN`).
            ImportError: There is no matplotlib.
        """
        trees.save(self.products, path, self.text)

    def _repr_svg_(self) -> str | None:
        return self.svg() if self.products else None

    def __str__(self) -> str:
        return self.text.rstrip()

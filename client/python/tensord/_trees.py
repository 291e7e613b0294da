"""Drawings of contraction trees: as text, SVG and PNG."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from tensord.errors import InvalidArgument

if TYPE_CHECKING:
    from tensord._program_reports import ProgramProduct, TreeNode

_ROW = 64
_LINE = 14
_MARGIN = 16
_CHARACTER = 7
_GAP = 12
_LONGEST_LABELS = 24


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
        return svg(self.products, self.text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draws the trees of all products into a file.

        Args:
            path: Ends with `.svg`, `.png`, which takes matplotlib, or `.txt`.

        Raises:
            InvalidArgument: It ends otherwise (`FORMAT_UNKNOWN`).
            ImportError: There is no matplotlib.
        """
        save(self.products, path, self.text)

    def _repr_svg_(self) -> str | None:
        return self.svg() if self.products else None

    def __str__(self) -> str:
        return self.text.rstrip()


@dataclasses.dataclass(frozen=True)
class _Box:
    """A node in a picture.

    Attributes:
        x, y: Its middle, and its first line's.
        width: Of its text.
        lines: What stands there.
        children: Boxes below, that it is made of.
    """

    x: float
    y: float
    width: float
    lines: tuple[str, ...]
    children: tuple[_Box, ...]


@dataclasses.dataclass(frozen=True)
class _Picture:
    """Trees side by side, each below its heading, in units of a pixel."""

    width: float
    height: float
    headings: tuple[tuple[float, str], ...]
    trees: tuple[_Box, ...]


def text(product: ProgramProduct) -> str:
    """Returns the tree with a line for each node, the product first.

    >>> print(text(product))
    statement 0: optimal, 4000 flops, largest intermediate 50 elements
    [i,l] 10x20, 2000 flops
    ├── [i,k] 10x5, 2000 flops
    │   ├── A[i,j] 10x20
    │   └── B[j,k] 20x5
    └── C[k,l] 5x20
    """
    lines = [_heading(product)]
    # (node, what stands before it, what stands before its children)
    left = [(len(product.nodes) - 1, "", "")]
    while left:
        number, before, below = left.pop()
        node = product.nodes[number]
        title, detail = _title(node), _detail(node)
        lines.append(f"{before}{title} {detail}")
        children = [
            (child, f"{below}├── ", f"{below}│   ") for child in node.children[:-1]
        ] + [(child, f"{below}└── ", f"{below}    ") for child in node.children[-1:]]
        left += reversed(children)
    return "\n".join(lines)


def svg(products: Sequence[ProgramProduct], otherwise: str = "") -> str:
    """Returns an SVG picture of the trees, side by side; of a text without any."""
    picture = _layout(products, otherwise)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width:.0f}" '
        f'height="{picture.height:.0f}" viewBox="0 0 {picture.width:.0f} '
        f'{picture.height:.0f}" font-family="monospace" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for x, heading in picture.headings:
        parts.append(
            f'<text x="{x:.1f}" y="{_MARGIN + 4}" fill="#555">{escape(heading)}</text>'
        )
    boxes = list(_all_boxes(picture.trees))
    for box in boxes:
        for child in box.children:
            parts.append(
                f'<line x1="{box.x:.1f}" y1="{_bottom(box):.1f}" x2="{child.x:.1f}" '
                f'y2="{child.y - _LINE:.1f}" stroke="#999"/>'
            )
    for box in boxes:
        for i, line in enumerate(box.lines):
            parts.append(
                f'<text x="{box.x:.1f}" y="{box.y + i * _LINE:.1f}" '
                f'text-anchor="middle" fill="{"#000" if i == 0 else "#555"}">'
                f"{escape(line)}</text>"
            )
    return "\n".join([*parts, "</svg>\n"])


def save(
    products: Sequence[ProgramProduct],
    path: str | os.PathLike[str],
    otherwise: str = "",
) -> None:
    """Draws the trees into a file, as `Explained.save` says.

    Args:
        products: Whose trees.
        path: The file.
        otherwise: What to draw when there are none.
    """
    target = pathlib.Path(path)
    if target.suffix == ".svg":
        target.write_text(svg(products, otherwise), encoding="utf-8")
    elif target.suffix == ".txt":
        drawn = "\n\n".join(map(text, products)) or otherwise.rstrip()
        target.write_text(drawn + "\n", encoding="utf-8")
    elif target.suffix == ".png":
        save_png(products, target, otherwise)
    else:
        raise InvalidArgument(
            f"cannot draw into {target.name}, wanted a name that ends with .svg, .png or "
            ".txt",
            reason="FORMAT_UNKNOWN",
        )


def save_png(
    products: Sequence[ProgramProduct],
    path: str | os.PathLike[str],
    otherwise: str = "",
) -> None:
    """Draws the trees, side by side, into a PNG file; a text without any.

    Raises:
        ImportError: There is no matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "drawing a PNG takes matplotlib: `pip install matplotlib`, or draw an .svg, "
            "which takes nothing"
        ) from None
    picture = _layout(products, otherwise)
    figure = Figure(figsize=(picture.width / 72, picture.height / 72), dpi=144)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), frame_on=False)
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0), xticks=[], yticks=[])
    style: dict[str, Any] = {
        "family": "monospace",
        "fontsize": 11,
        "verticalalignment": "baseline",
    }
    for x, heading in picture.headings:
        axes.text(x, _MARGIN + 4, _plain(heading), color="#555555", **style)
    for box in _all_boxes(picture.trees):
        for child in box.children:
            ends = ([box.x, child.x], [_bottom(box), child.y - _LINE])
            axes.plot(*ends, color="#999999", linewidth=1)
        for i, line in enumerate(box.lines):
            axes.text(
                box.x,
                box.y + i * _LINE,
                _plain(line),
                horizontalalignment="center",
                color="#000000" if i == 0 else "#555555",
                **style,
            )
    figure.savefig(path)


def _plain(line: str) -> str:
    """Keeps matplotlib from reading a line as mathematics."""
    return line.replace("$", r"\$")


def _heading(product: ProgramProduct) -> str:
    sliced = ""
    if product.slice_count > 1:
        sliced = f", {product.slice_count} slices over {', '.join(product.sliced)}"
    cost = f", {product.symbolic_cost} multiplications" if product.symbolic_cost else ""
    return (
        f"statement {product.statement}: {product.method}, {product.flops:.4g} flops, "
        f"largest intermediate {product.largest:.4g} elements{sliced}{cost}"
    )


def _title(node: TreeNode) -> str:
    labels = ",".join(node.labels)
    if len(labels) > _LONGEST_LABELS:
        labels = labels[: _LONGEST_LABELS - 3] + "..."
    # A factor of a statement is called as it is written, with its labels.
    return node.name if node.name.endswith("]") else f"{node.name}[{labels}]"


def _detail(node: TreeNode) -> str:
    extents = "x".join(map(str, node.extents)) or "1"
    if len(extents) > _LONGEST_LABELS:
        extents = extents[: _LONGEST_LABELS - 3] + "..."
    return extents + (f", {node.flops:.4g} flops" if node.children else "")


def _layout(products: Sequence[ProgramProduct], otherwise: str) -> _Picture:
    """Places factors from left to right, and what is made of them above its middle."""
    if not products:
        lines = tuple(otherwise.rstrip().split("\n"))
        width = _CHARACTER * max(map(len, lines))
        box = _Box(_MARGIN + width / 2, 2 * _MARGIN, width, lines, ())
        return _Picture(width + 2 * _MARGIN, _bottom(box) + _MARGIN, (), (box,))
    begin = float(_MARGIN)
    headings, trees, bottom = [], [], 0.0
    for product in products:
        headings.append((begin, _heading(product)))
        root, end = _placed(product, begin)
        end = max(end, begin + _CHARACTER * len(_heading(product)))
        trees.append(root)
        bottom = max([bottom, *map(_bottom, _all_boxes([root]))])
        begin = end + 2 * _GAP
    return _Picture(
        max(begin, 2 * _MARGIN), bottom + _MARGIN, tuple(headings), tuple(trees)
    )


def _placed(product: ProgramProduct, begin: float) -> tuple[_Box, float]:
    """Returns the tree of a product, and where it ends on the right."""
    nodes = product.nodes
    depths = {len(nodes) - 1: 0}
    order = [len(nodes) - 1]
    for number in order:  # Grows: parents before children.
        for child in nodes[number].children:
            depths[child] = depths[number] + 1
            order.append(child)
    left = [len(nodes) - 1]
    factors = []
    while left:  # Factors from left to right.
        number = left.pop()
        left += reversed(nodes[number].children)
        if not nodes[number].children:
            factors.append(number)
    boxes: dict[int, _Box] = {}
    for number in [*factors, *(n for n in reversed(order) if nodes[n].children)]:
        node = nodes[number]
        lines = (_title(node), _detail(node))
        width = _CHARACTER * max(map(len, lines))
        children = tuple(boxes[child] for child in node.children)
        if children:
            x = sum(child.x for child in children) / len(children)
        else:
            x = begin + width / 2
            begin += width + _GAP
        y = 2 * _MARGIN + _LINE + _ROW * depths[number]
        boxes[number] = _Box(x, y, width, lines, children)
    root = boxes[len(nodes) - 1]
    right = max(box.x + box.width / 2 for box in boxes.values())
    return root, max(begin, right)


def _all_boxes(trees: Sequence[_Box]) -> list[_Box]:
    boxes = list(trees)
    for box in boxes:  # Grows.
        boxes += box.children
    return boxes


def _bottom(box: _Box) -> float:
    return box.y + _LINE * (len(box.lines) - 1) + 4

"""Drawings of contraction trees: as text, SVG and PNG."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Protocol
from xml.sax.saxutils import escape

from tensord.errors import InvalidArgument

_ROW = 64
_LINE = 14
_MARGIN = 16
_CHARACTER = 7
_GAP = 12
_LONGEST_LABELS = 24


@dataclasses.dataclass(frozen=True)
class TreeNode:
    """A factor of a product, or what a step makes of others.

    Attributes:
        name: Of a factor.
        labels: Of its modes.
        extents: Of its modes.
        children: Of what a step makes: the numbers of the nodes that it multiplies.
        flops: Of its step, in all slices.
    """

    name: str
    labels: tuple[str, ...]
    extents: tuple[int, ...]
    children: tuple[int, ...]
    flops: float


class Tree(Protocol):
    """What is drawn.

    Attributes:
        heading: What stands above it.
        nodes: Its nodes, children before their parents; the last is the root.
    """

    @property
    def heading(self) -> str: ...

    @property
    def nodes(self) -> tuple[TreeNode, ...]: ...


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
class _Text:
    """A line of text in a picture.

    Attributes:
        x, y: Its middle, or its beginning if it is a heading; and its base line.
        text: What it says.
        is_heading: Whether it stands above a tree.
        is_title: Whether it is a node's first line.
    """

    x: float
    y: float
    text: str
    is_heading: bool = False
    is_title: bool = False

    @property
    def color(self) -> str:
        return "#000000" if self.is_title else "#555555"


@dataclasses.dataclass(frozen=True)
class _Picture:
    """Trees side by side, each below its heading, in units of a pixel.

    Attributes:
        edges: From nodes to their children: x and y of both ends.
    """

    width: float
    height: float
    edges: tuple[tuple[float, float, float, float], ...]
    texts: tuple[_Text, ...]


def text(tree: Tree) -> str:
    """Returns the tree with a line for each node, the root first.

    >>> print(text(tree))
    statement 0: optimal, 4000 flops, largest intermediate 50 elements
    [i,l] 10x20, 2000 flops
    ├── [i,k] 10x5, 2000 flops
    │   ├── A[i,j] 10x20
    │   └── B[j,k] 20x5
    └── C[k,l] 5x20
    """
    lines = [tree.heading]
    # (node, what stands before it, what stands before its children)
    left = [(len(tree.nodes) - 1, "", "")]
    while left:
        number, before, below = left.pop()
        node = tree.nodes[number]
        title, detail = _title(node), _detail(node)
        lines.append(f"{before}{title} {detail}")
        children = [
            (child, f"{below}├── ", f"{below}│   ") for child in node.children[:-1]
        ] + [(child, f"{below}└── ", f"{below}    ") for child in node.children[-1:]]
        left += reversed(children)
    return "\n".join(lines)


def svg(trees: Sequence[Tree], otherwise: str = "") -> str:
    """Returns an SVG picture of the trees, side by side; of a text without any."""
    picture = _layout(trees, otherwise)
    width, height = f"{picture.width:.0f}", f"{picture.height:.0f}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for x1, y1, x2, y2 in picture.edges:
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            'stroke="#999999"/>'
        )
    for line in picture.texts:
        anchor = "start" if line.is_heading else "middle"
        parts.append(
            f'<text x="{line.x:.1f}" y="{line.y:.1f}" text-anchor="{anchor}" '
            f'fill="{line.color}">{escape(line.text)}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def save(
    trees: Sequence[Tree],
    path: str | os.PathLike[str],
    otherwise: str = "",
) -> None:
    """Draws the trees into a file, as `Explained.save` says.

    Args:
        trees: Whose trees.
        path: The file.
        otherwise: What to draw when there are none.
    """
    target = pathlib.Path(path)
    if target.suffix == ".svg":
        target.write_text(svg(trees, otherwise), encoding="utf-8")
    elif target.suffix == ".txt":
        drawn = "\n\n".join(map(text, trees)) or otherwise.rstrip()
        target.write_text(drawn + "\n", encoding="utf-8")
    elif target.suffix == ".png":
        save_png(trees, target, otherwise)
    else:
        raise InvalidArgument(
            f"cannot draw into {target.name}, wanted a name that ends with .svg, .png or "
            ".txt",
            reason="FORMAT_UNKNOWN",
        )


def save_png(
    trees: Sequence[Tree],
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
    picture = _layout(trees, otherwise)
    figure = Figure(figsize=(picture.width / 72, picture.height / 72), dpi=144)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), frame_on=False)
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0), xticks=[], yticks=[])
    for x1, y1, x2, y2 in picture.edges:
        axes.plot([x1, x2], [y1, y2], color="#999999", linewidth=1)
    for line in picture.texts:
        axes.text(
            line.x,
            line.y,
            line.text.replace("$", r"\$"),  # It would begin mathematics.
            color=line.color,
            family="monospace",
            fontsize=11,
            horizontalalignment="left" if line.is_heading else "center",
            verticalalignment="baseline",
        )
    figure.savefig(path)


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


def _layout(trees: Sequence[Tree], otherwise: str) -> _Picture:
    """Places factors from left to right, and what is made of them above its middle."""
    if not trees:
        lines = tuple(otherwise.rstrip().split("\n"))
        width = _CHARACTER * max(map(len, lines))
        box = _Box(_MARGIN + width / 2, 2 * _MARGIN, width, lines, ())
        return _picture(width + 2 * _MARGIN, (), [box])
    begin = float(_MARGIN)
    headings, roots = [], []
    for tree in trees:
        headings.append(_Text(begin, _MARGIN + 4, tree.heading, is_heading=True))
        root, end = _placed(tree, begin)
        roots.append(root)
        begin = max(end, begin + _CHARACTER * len(tree.heading)) + 2 * _GAP
    return _picture(begin, headings, roots)


def _picture(
    width: float, headings: Sequence[_Text], roots: Sequence[_Box]
) -> _Picture:
    boxes = list(roots)
    for box in boxes:  # Grows.
        boxes += box.children
    edges = tuple(
        (box.x, _bottom(box), child.x, child.y - _LINE)
        for box in boxes
        for child in box.children
    )
    lines = tuple(
        _Text(box.x, box.y + i * _LINE, line, is_title=i == 0)
        for box in boxes
        for i, line in enumerate(box.lines)
    )
    height = max(map(_bottom, boxes)) + _MARGIN
    return _Picture(width, height, edges, (*headings, *lines))


def _placed(tree: Tree, begin: float) -> tuple[_Box, float]:
    """Returns the boxes of a tree, and where it ends on the right."""
    nodes = tree.nodes
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


def _bottom(box: _Box) -> float:
    return box.y + _LINE * (len(box.lines) - 1) + 4

"""Boxes, arrows and text as SVG, which needs nothing to be drawn or read."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

INK, PALE = "#1f2430", "#8a93a6"
FILLS = {
    "client": "#e3ecfd",
    "server": "#e9e4f8",
    "core": "#dff3e6",
    "device": "#fdeed8",
    "plain": "#ffffff",
    "dark": INK,
}
SANS = "font-family='system-ui, Helvetica, Arial, sans-serif'"
MONO = "font-family='ui-monospace, Menlo, Consolas, monospace'"


class Drawing:
    """A picture that grows. Coordinates are pixels from the upper left corner."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}'"
            f" height='{height}' role='img' aria-label='{escape(title)}'>",
            "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8'"
            f" orient='auto-start-reverse'><path d='M0 0L8 4L0 8z' fill='{INK}'/></marker></defs>",
            f"<rect width='{width}' height='{height}' rx='8' fill='#fbfbfd'/>",
        ]

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 13,
        anchor: str = "start",
        colour: str = INK,
        is_bold: bool = False,
        is_code: bool = False,
    ) -> None:
        weight = " font-weight='600'" if is_bold else ""
        self._parts.append(
            f"<text x='{x:g}' y='{y:g}' {MONO if is_code else SANS} font-size='{size}'"
            f" text-anchor='{anchor}' fill='{colour}'{weight} xml:space='preserve'>{escape(words)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, title: str, *lines: str, kind: str = "plain"
    ) -> None:
        """A box with a title and lines below it, all in the middle."""
        self._parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='6'"
            f" fill='{FILLS[kind]}' stroke='{PALE}'/>"
        )
        middle = x + width / 2
        top = y + height / 2 - 8.5 * len(lines) + 5
        self.text(middle, top, title, anchor="middle", is_bold=True)
        for number, line in enumerate(lines, 1):
            self.text(middle, top + 17 * number, line, size=12, anchor="middle")

    def line(self, x: float, y: float, to_x: float, to_y: float) -> None:
        self._parts.append(
            f"<path d='M{x:g} {y:g}L{to_x:g} {to_y:g}' stroke='{PALE}' stroke-dasharray='4 4' fill='none'/>"
        )

    def arrow(
        self,
        x: float,
        y: float,
        to_x: float,
        to_y: float,
        words: str = "",
        *,
        both: bool = False,
    ) -> None:
        start = " marker-start='url(#tip)'" if both else ""
        self._parts.append(
            f"<path d='M{x:g} {y:g}L{to_x:g} {to_y:g}' stroke='{INK}' stroke-width='1.3' fill='none'"
            f" marker-end='url(#tip)'{start}/>"
        )
        if words:
            self.text((x + to_x) / 2, (y + to_y) / 2 - 6, words, size=12, anchor="middle")

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A box without words."""
        self._parts.append(
            f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='3'"
            f" fill='{FILLS[kind]}' stroke='{PALE}'/>"
        )

    def dot(self, x: float, y: float, colour: str) -> None:
        self._parts.append(f"<circle cx='{x:g}' cy='{y:g}' r='3.6' fill='{colour}' fill-opacity='0.75'/>")

    def save(self, file: Path) -> None:
        file.write_text("\n".join([*self._parts, "</svg>\n"]))


def terminal(file: Path, title: str, lines: list[str]) -> None:
    """What a terminal shows, command lines after a `$`."""
    width = max(640, 28 + round(7.83 * max(map(len, lines))))
    height = 46 + 18 * len(lines)
    picture = Drawing(width, height, title)
    picture.bar(0.5, 0.5, width - 1, height - 1, "dark")
    for number in range(3):
        picture.bar(14 + 18 * number, 10, 10, 10, "plain")
    for number, line in enumerate(lines):
        colour = "#9fd8ff" if line.startswith("$ ") else "#e8ebf2"
        picture.text(14, 46 + 18 * number, line, is_code=True, colour=colour)
    picture.save(file)

"""Plots of what is measured case by case, as SVG without any library."""

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from harness.contraction_report import by_class
from harness.raw import Case, grouped

WIDTH, HEIGHT = 460, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 28, 42
CHOSEN, BEST = "#1b6ca8", "#d1495b"
OTHERS = ("#2e933c", "#8e6c8a", "#e08e45", "#5f6f52")

Ticks = list[tuple[float, str]]  # place and text


class Panel:
    """One plot. Coordinates are those of the data; y starts at 0."""

    def __init__(self, title: str, x_label: str, y_label: str, x_range: tuple[float, float], y_most: float):
        self.title, self.x_label, self.y_label = title, x_label, y_label
        self.x_least, self.x_most = x_range
        self.y_most = y_most or 1.0
        self.marks: list[str] = []
        self.names: list[tuple[str, str]] = []  # of the legend: name and color

    def x(self, value: float) -> float:
        span = (self.x_most - self.x_least) or 1.0
        return LEFT + (value - self.x_least) / span * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - min(value / self.y_most, 1.02) * (HEIGHT - TOP - BOTTOM)

    def line(self, points: list[tuple[float, float]], color: str, name: str = "", dashes: str = "") -> None:
        path = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.marks.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"{dash}/>')
        if name:
            self.names.append((name, color))

    def dot(self, a: float, b: float, color: str, radius: float = 2.0) -> None:
        self.marks.append(
            f'<circle cx="{self.x(a):.1f}" cy="{self.y(b):.1f}" r="{radius}" fill="{color}" fill-opacity="0.5"/>'
        )

    def bar(self, a: float, width: float, b: float, color: str) -> None:
        left, right, top = self.x(a), self.x(a + width), self.y(b)
        self.marks.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left - 1:.1f}" '
            f'height="{HEIGHT - BOTTOM - top:.1f}" fill="{color}"/>'
        )

    def svg(self, column: int, row: int, x_ticks: Ticks) -> str:
        parts = [f'<g transform="translate({column * WIDTH},{row * HEIGHT})">']
        parts.append(f'<text x="{LEFT}" y="16" font-weight="bold">{escape(self.title)}</text>')
        for tick in ticks(self.y_most):
            at = self.y(tick)
            parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
            parts.append(f'<text x="{LEFT - 4}" y="{at + 3:.1f}" text-anchor="end">{tick:g}</text>')
        for place, text in x_ticks:
            parts.append(f'<text x="{self.x(place):.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{text}</text>')
        parts.append(
            f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(self.x_label)}</text>'
        )
        parts.append(
            f'<text transform="translate(12,{HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y_label)}</text>"
        )
        parts += self.marks
        for i, (name, color) in enumerate(self.names):
            at = HEIGHT - BOTTOM - 8 - 13 * (len(self.names) - 1 - i)
            parts.append(
                f'<text x="{WIDTH - RIGHT - 6}" y="{at}" text-anchor="end" fill="{color}">{escape(name)}</text>'
            )
        parts.append("</g>")
        return "\n".join(parts)


def ticks(most: float) -> list[float]:
    """About five round numbers from 0 to `most`."""
    step = 10 ** math.floor(math.log10(most))
    for factor in (0.1, 0.2, 0.5, 1.0):
        if most / (step * factor) <= 6:
            step *= factor
            break
    return [i * step for i in range(int(most / step + 1e-9) + 1)]


def page(panels: list[tuple[Panel, Ticks]], columns: int) -> str:
    rows = (len(panels) + columns - 1) // columns
    body = "\n".join(panel.svg(i % columns, i // columns, at) for i, (panel, at) in enumerate(panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * WIDTH}" height="{rows * HEIGHT}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


@dataclass
class Speed:
    """What is done in a case's time, and what limits that."""

    unit: str
    fact: str  # of a case: over nanoseconds it is a number of the unit
    limit: str


BANDWIDTH = Speed("GB/s", "bytes", "copy")
READING = Speed("GB/s", "bytes", "reading")
ARITHMETIC = Speed("GFLOP/s", "flops", "roof")


def sorted_panel(title: str, cases: list[Case], speed: Speed) -> tuple[Panel, Ticks]:
    """The speed in every case, least first, of the chosen kernel, the best one, the limit and each peer."""

    def rates(times: Iterable[tuple[Case, float]]) -> list[float]:
        return [case.facts[speed.fact] / ns for case, ns in times]

    curves: dict[str, list[float]] = {
        speed.limit: rates((case, case.limit_ns) for case in cases),
        "best kernel": rates((case, case.best["ns"]) for case in cases),
        "chosen kernel": rates((case, case.chosen["ns"]) for case in cases),
    }
    for peer in sorted({peer for case in cases for peer in case.peers}):
        curves[peer] = rates((case, case.peers[peer]) for case in cases if peer in case.peers)
    most = max(max(of_curve) for of_curve in curves.values())
    panel = Panel(title, "cases, slowest first", speed.unit, (1, len(cases)), 1.05 * most)
    for color, (name, of_curve) in zip(("#999999", BEST, CHOSEN, *OTHERS), curves.items(), strict=False):
        # A peer may have fewer cases: its curve is as wide as the others.
        step = (len(cases) - 1) / max(len(of_curve) - 1, 1)
        points = [(1 + i * step, rate) for i, rate in enumerate(sorted(of_curve))]
        panel.line(points, color, name, "4 3" if name == speed.limit else "")
    return panel, [(1, "1"), (len(cases), str(len(cases)))]


def histogram_panel(title: str, cases: list[Case]) -> tuple[Panel, Ticks]:
    """How many cases reach which part of the copy."""
    width = 0.05
    bins = [0] * 24
    for case in cases:
        bins[min(int(case.ratio(case.chosen) / width), len(bins) - 1)] += 1
    panel = Panel(title, "chosen kernel / copy", "cases", (0, width * len(bins)), 1.05 * max(bins))
    for i, count in enumerate(bins):
        if count:
            panel.bar(i * width, width, count, CHOSEN)
    return panel, [(tenths / 10, f"{tenths / 10:g}") for tenths in range(0, 13, 2)]


def group_panel(title: str, groups: dict[str, list[Case]], kind: str, limit: str) -> tuple[Panel, Ticks]:
    """Part of the limit by group: every case, and the medians of chosen and best."""
    most = max(1.0, *(case.ratio(case.best) for members in groups.values() for case in members))
    places = {group: i + 1 for i, group in enumerate(groups)}
    panel = Panel(title, kind, f"of {limit}", (0.5, len(places) + 0.5), 1.05 * most)
    for group, members in groups.items():
        for case in members:
            panel.dot(places[group], case.ratio(case.chosen), CHOSEN)

    def medians(of: Callable[[Case], float]) -> list[tuple[float, float]]:
        return [(places[group], statistics.median(of(case) for case in members)) for group, members in groups.items()]

    panel.line(medians(lambda case: case.ratio(case.best)), BEST, "best kernel, median", "4 3")
    panel.line(medians(lambda case: case.ratio(case.chosen)), CHOSEN, "chosen kernel, median")
    return panel, [(place, group) for group, place in places.items()]


def rank_panel(title: str, cases: list[Case]) -> tuple[Panel, Ticks]:
    by_rank = sorted(grouped(cases, lambda case: case.facts["rank"]).items())
    return group_panel(title, {str(rank): members for rank, members in by_rank}, "rank", BANDWIDTH.limit)


def permutation_plots(cases: list[Case]) -> dict[str, str]:
    """SVG by file name; empty without cases."""
    by_type = grouped(cases, lambda case: case.facts["type"])
    if not by_type:
        return {}
    bandwidth, ranks = [], []
    for kind, members in by_type.items():
        bandwidth.append(sorted_panel(f"permutation, {kind}, {len(members)} cases", members, BANDWIDTH))
        bandwidth.append(histogram_panel(f"permutation, {kind}", members))
        ranks.append(rank_panel(f"permutation, {kind}, by rank", members))
    return {"permutation-bandwidth.svg": page(bandwidth, 2), "permutation-by-rank.svg": page(ranks, len(ranks))}


def operation_plots(elementwise: list[Case], reduction: list[Case]) -> dict[str, str]:
    """The same; a row of panels for each."""
    panels = [
        sorted_panel(f"{part}, {kind}, {len(members)} cases", members, speed)
        for part, cases, speed in (("element-wise", elementwise, BANDWIDTH), ("reduction", reduction, READING))
        for kind, members in grouped(cases, lambda case: case.facts["type"]).items()
    ]
    return {"elementwise-and-reduction.svg": page(panels, 3)} if panels else {}


def contraction_plots(cases: list[Case]) -> dict[str, str]:
    """The same, of cases whose limit is the roof."""
    panels = []
    for kind, members in grouped(cases, lambda case: case.facts["type"]).items():
        classes = {name: in_class for name, _, in_class in by_class(members)}
        panels.append(sorted_panel(f"contraction, {kind}, {len(members)} cases", members, ARITHMETIC))
        panels.append(group_panel(f"contraction, {kind}, by class", classes, "class", ARITHMETIC.limit))
    return {"contraction-roof.svg": page(panels, 2)} if panels else {}

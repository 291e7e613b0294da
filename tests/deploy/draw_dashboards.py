"""Draws deploy/docs/dashboards/NAME.png: what the panels of each dashboard show of a server under load.

    build/venv/bin/python tests/deploy/draw_dashboards.py [--seconds 60]

Grafana draws them from the same queries and answers.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import conftest  # noqa: F401  (finds what tests/python has)
import matplotlib
from matplotlib import pyplot, ticker

from monitored_server import MonitoredServer, Panel, Prometheus, expand, panels
from places import DEPLOY
from waiting import eventually

COLUMNS = 3
RATE_SECONDS = 6
UNITS = {"none": "", "reqps": "calls/s", "ops": "/s", "s": "s", "Bps": "B/s", "bytes": "B"}


def legend(pattern: str, labels: dict[str, str]) -> str:
    text = re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), pattern)
    return re.sub(r"127\.0\.0\.1:\d+", "", text).strip()


def draw_panel(axes: Any, panel: Panel, prometheus: Prometheus, start: float, end: float) -> None:
    for query, pattern in panel.queries:
        for answer in prometheus.query_range(expand(query, RATE_SECONDS), start, end):
            times, values = zip(*answer["values"])
            seconds = [moment - start for moment in times]
            axes.plot(seconds, list(map(float, values)), label=legend(pattern, answer["metric"]))
    axes.set_title(panel.title, fontsize=9, loc="left")
    axes.set_xlim(0, end - start)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    if panel.unit == "percentunit":
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1.0))
    else:
        axes.yaxis.set_major_formatter(ticker.EngFormatter(UNITS[panel.unit]))
    if axes.get_legend_handles_labels()[1] and len(axes.lines) <= 8:
        axes.legend(fontsize=6, frameon=False, loc="upper left")


def draw(name: str, shown: list[Panel], prometheus: Prometheus, start: float, end: float) -> Path:
    rows = -(-len(shown) // COLUMNS)
    figure, grid = pyplot.subplots(rows, COLUMNS, figsize=(15, 2.6 * rows), squeeze=False)
    for axes, panel in itertools.zip_longest(grid.flat, shown):
        if panel is None:
            axes.axis("off")
        else:
            draw_panel(axes, panel, prometheus, start, end)
    figure.suptitle(name, fontsize=12, x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    file = DEPLOY / "docs/dashboards" / f"{name.removeprefix('tensord: ').replace(' ', '-')}.png"
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=75)
    pyplot.close(figure)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws what the dashboards show.")
    parser.add_argument("--seconds", type=float, default=60, help="how long to put load on")
    seconds = parser.parse_args().seconds
    matplotlib.use("Agg")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            MonitoredServer(folder) as server,
            Prometheus(folder, server.metrics_address) as prometheus,
        ):
            assert eventually(lambda: prometheus.query("up == 1", time.time()) != [])
            start = time.time()
            for rate in (40, 120, 400):
                with server.load(seconds / 3, rate):
                    server.fail_a_call()
            end = time.time()
            by_dashboard = itertools.groupby(panels(), lambda panel: panel.dashboard)
            for title, shown in by_dashboard:
                print(draw(title, list(shown), prometheus, start, end))


if __name__ == "__main__":
    main()

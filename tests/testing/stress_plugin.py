"""Pytest's part of tests/stress: finds what has the mark `timing`, shuffles it, tells how it went.

Reads from the environment STRESS_TESTS, a file with the ids of the tests to run in JSON, or
nothing for all; STRESS_SEED; STRESS_REPORT, the file that gets a line of JSON for each test
that is found, begins or ends.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

_seconds: dict[str, float] = {}
_outcomes: dict[str, str] = {}


def tell(**what: Any) -> None:
    with open(os.environ["STRESS_REPORT"], "a") as report:
        report.write(json.dumps(what) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("timing")]
    if os.environ.get("STRESS_TESTS"):
        wanted = set(json.loads(Path(os.environ["STRESS_TESTS"]).read_text()))
        marked = [item for item in marked if item.nodeid in wanted]
    config.hook.pytest_deselected(items=[item for item in items if item not in marked])
    # What tests of a file share is made once: files are shuffled, and tests within them.
    chance = random.Random(os.environ.get("STRESS_SEED", "0"))
    files: dict[str, list[pytest.Item]] = {}
    for item in marked:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    order = [*files.values()]
    chance.shuffle(order)
    for tests in order:
        chance.shuffle(tests)
    items[:] = [item for tests in order for item in tests]
    if config.option.collectonly:
        for item in items:
            is_high = any(mark.kwargs.get("high") for mark in item.iter_markers("timing"))
            tell(found=item.nodeid, high=is_high, path=str(item.path))


def pytest_runtest_logstart(nodeid: str) -> None:
    tell(begun=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = report.nodeid
    _seconds[name] = _seconds.get(name, 0) + report.duration
    if report.outcome != "passed" and _outcomes.get(name) != "failed":
        _outcomes[name] = report.outcome
    if report.when == "teardown":
        outcome = _outcomes.pop(name, "passed")
        tell(ended=name, outcome=outcome, seconds=_seconds.pop(name))

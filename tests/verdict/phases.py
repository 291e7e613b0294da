"""The steps of a run: what each took, and how it ended."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

LINES = 40  # of what a phase printed in the end
# What ninja says of a step that failed, up to the next one.
STEP = re.compile(r"^FAILED: .*?(?=^\[\d+/\d+\]|^ninja: |\Z)", re.MULTILINE | re.DOTALL)


class Phase(NamedTuple):
    """One step."""

    name: str
    seconds: int
    status: str  # "0", another exit status, or "stopped"
    log: Path


def phases_of(folder: Path) -> list[Phase]:
    """Those of FOLDER/phases: a line of each has seconds, status and name."""
    file = folder / "phases"
    lines = file.read_text().splitlines() if file.exists() else []
    fields = [line.split("\t") for line in lines]
    return [
        Phase(name, int(seconds), status, folder / "logs" / f"{name}.log")
        for seconds, status, name in fields
    ]


def cause_of(phase: Phase) -> str:
    """Why it failed: the steps of ninja that did, or the last lines."""
    text = phase.log.read_text(errors="replace") if phase.log.exists() else ""
    steps = STEP.findall(text) if phase.status != "stopped" else []
    return "\n".join(steps).rstrip() or "\n".join(text.splitlines()[-LINES:])

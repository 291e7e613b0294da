"""Which tests may be skipped: tests/skips.txt says it, with reasons."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

SKIPS = Path(__file__).resolve().parents[1] / "skips.txt"


class Skip(NamedTuple):
    """A line of the list."""

    suite: str  # SUITE, or SUITE/PROGRAM; with * for any characters, as the name
    name: str
    reason: str  # part of what the test says


def skips_of(file: Path = SKIPS) -> list[Skip]:
    lines = (line.strip() for line in file.read_text().splitlines())
    fields = [
        line.split(None, 2) for line in lines if line and not line.startswith("#")
    ]
    if short := [words for words in fields if len(words) < 3]:
        raise ValueError(f"{file}: wanted suite, test and reason: {short}")
    return [Skip(*words) for words in fields]


def may_skip(
    skips: list[Skip], suite: str, program: str, name: str, message: str
) -> bool:
    return any(
        (fnmatchcase(suite, skip.suite) or fnmatchcase(f"{suite}/{program}", skip.suite))
        and fnmatchcase(name.replace("[", "("), skip.name.replace("[", "("))
        and skip.reason in message
        for skip in skips
    )

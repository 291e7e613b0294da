"""Folders of the checkout, and programs that were built."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DEPLOY = REPOSITORY / "deploy"


def program(name: str) -> str:
    """The program of that name, built beside the server."""
    return str(Path(os.environ["TENSORD_SERVER"]).with_name(name))

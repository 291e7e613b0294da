"""Tells the build the version of the checkout."""

import subprocess
from pathlib import Path
from typing import Any

_VERSION = Path(__file__).resolve().parents[3] / "deploy" / "version"


def dynamic_metadata(field: str, settings: dict[str, Any]) -> str:
    """Returns the version.

    Raises:
        RuntimeError: This is no checkout.
    """
    if field != "version" or settings:
        raise RuntimeError(f"got {field} {settings}, wanted version alone")
    if not _VERSION.exists():
        raise RuntimeError(f"there is no {_VERSION}; build from a checkout")
    said = subprocess.run([_VERSION], capture_output=True, text=True, check=True)
    return said.stdout.strip()

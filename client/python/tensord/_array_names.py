"""Names that a namespace does not have."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def missing(namespace: str, name: str, *known: Sequence[str]) -> AttributeError:
    """Returns the error for a name, which tells the nearest one there is.

    Args:
        namespace: What does not have it.
        name: What was asked for.
        *known: Names that there are; of the last ones also what is less near.
    """
    near: list[str] = []
    for names in known:
        cutoff = 0.4 if names is known[-1] else 0.75
        near = near or difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
    hint = f", the nearest name is {near[0]!r}" if near else ""
    return AttributeError(f"{namespace} has no {name!r}{hint}", name=name)

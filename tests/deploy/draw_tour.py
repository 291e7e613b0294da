"""Runs the shell code of deploy/docs/tour.md and draws what it says into deploy/docs/pictures.

    TENSORD_SERVER=build/release/bin/tensord build/venv/bin/python tests/deploy/draw_tour.py

A block is drawn when the next line but one shows a picture of the name tour-NAME.svg.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import conftest  # noqa: F401  (finds what tests/python has)

from places import DEPLOY, REPOSITORY
from shown_code import SHELL, Block, blocks, ports_of_ours

sys.path.insert(0, str(DEPLOY / "docs"))
from drawing import terminal  # noqa: E402

TOUR = DEPLOY / "docs/tour.md"
PICTURES = DEPLOY / "docs/pictures"
MOST_LINES, MOST_COLUMNS = 26, 118


def pictures() -> list[tuple[Block, str]]:
    """Blocks of the shell, with the name of the picture behind each, or ""."""
    lines = TOUR.read_text().splitlines()
    found = []
    for block in blocks(TOUR):
        behind = block.line + block.text.count("\n") + 1
        shown = re.search(r"\(pictures/(tour-\w+)\.svg\)", "".join(lines[behind - 1 : behind + 1]))
        if block.language == "sh" and (shown or not block.reason):
            found.append((block, shown[1] if shown else ""))
    return found


def script() -> str:
    """Prints each command before it runs, and a line of its own before each block."""
    parts = [SHELL]
    for block, name in pictures():
        parts.append(f"echo '== {name}'\n")
        for line in block.text.splitlines():
            quoted = "'$ " + line.replace("'", "'\\''") + "'"
            parts.append(f"echo {quoted}\n{line}\n")
    return "".join(parts)


def drawn_lines(text: str) -> list[str]:
    lines = [line.rstrip()[:MOST_COLUMNS] for line in text.rstrip().splitlines()]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], "..."]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in "client", "deploy", "build":
            (Path(folder) / name).symlink_to(REPOSITORY / name)
        binaries = Path(os.environ["TENSORD_SERVER"]).resolve().parent
        text, ports = ports_of_ours(script())
        environment = {
            "TENSORD_ADDRESS": f"localhost:{ports['8470']}",
            "PATH": f"{binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=folder,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        said = f"\n{done.stdout}"
        for port, ours in ports.items():
            said = said.replace(ours, port)
        for part in said.split("\n== ")[1:]:
            name, _, shown = part.partition("\n")
            if name:
                terminal(PICTURES / f"{name}.svg", name, drawn_lines(shown))
        shutil.copy(Path(folder) / "order.svg", PICTURES / "order.svg")


if __name__ == "__main__":
    main()

"""Code that the documents show.

Blocks between ``` are run in their order, page by page, by test_shown_code.py. In front of
one that is not stands `<!-- not run: REASON -->`. What is run and not shown is a comment
that begins with a line `<!-- LANGUAGE` and ends with a line `-->`.

    python tests/python/shown_code.py                    # lists what is not run, and why
    python tests/python/shown_code.py PAGE MAIN PIECES   # writes a page's C++: the program
                                                         # that it shows, and one of the rest
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ports import free_port

REPOSITORY = Path(__file__).resolve().parents[2]

SHELL = "set -euo pipefail\n"


class Block(NamedTuple):
    """Lines that belong together."""

    page: Path
    line: int
    language: str  # "" for what a program says
    text: str
    is_shown: bool
    reason: str  # why it is not run


def pages() -> list[Path]:
    """All documents but results of measurements, which are as they were."""
    parts = {page: page.relative_to(REPOSITORY).parts for page in documents()}
    return sorted(
        page
        for page, folders in parts.items()
        if not {"build", "results", ".pytest_cache"} & set(folders)
    )


def documents() -> list[Path]:
    """Those that git knows: others may lie beside them. Without git, all."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    names = filter(None, listed.stdout.split("\0"))
    known = [REPOSITORY / name for name in names if (REPOSITORY / name).exists()]
    return known or list(REPOSITORY.rglob("*.md"))


def blocks(page: Path) -> Iterator[Block]:
    lines = enumerate(page.read_text().splitlines(), 1)
    reason = ""
    for number, line in lines:
        said = re.fullmatch(r" *<!-- not run: (.+) -->", line)
        begin = re.fullmatch(r" *(```|<!-- )(\w*)", line)
        if begin:
            end = {"```": "```", "<!-- ": "-->"}[begin[1]]
            inside = itertools.takewhile(lambda each: each[1].strip() != end, lines)
            text = textwrap.dedent("\n".join(each for _, each in inside)) + "\n"
            yield Block(page, number + 1, begin[2], text, end == "```", reason)
        reason = said[1] if said else ""


def all_blocks(*languages: str) -> list[Block]:
    found = itertools.chain.from_iterable(map(blocks, pages()))
    return [each for each in found if not languages or each.language in languages]


def ports_of_ours(script: str) -> tuple[str, dict[str, str]]:
    """The script with free ports for those that documents name, and which they are."""
    ports = {port: str(free_port()) for port in ("8470", "9470")}
    return re.sub("|".join(ports), lambda found: ports[found[0]], script), ports


def placed(block: Block) -> str:
    """C++ whose mistakes are told with their place on the page, for the test's server."""
    text = block.text.replace('"localhost:8470"', 'std::getenv("TENSORD_ADDRESS")')
    return f'#line {block.line} "{block.page}"\n{text}'


def cpp(page: Path) -> tuple[str, str]:
    """The program that a page shows, and one that runs its other pieces in turn.

    Each piece is a block of its own, with what is not shown in front of it. What is not shown
    and includes headers is in front of them all.
    """
    head = "#include <cstdlib>\n"
    program, pieces, hidden = "", [], ""
    for block in blocks(page):
        if block.language != "cpp" or block.reason:
            continue
        if "int main(" in block.text:
            program = placed(block)
        elif "#include" in block.text:
            head += placed(block)
        elif not block.is_shown:
            hidden += placed(block)
        else:
            pieces.append(f"{{\n{hidden}{placed(block)}}}\n")
            hidden = ""
    return f"#include <cstdlib>\n{program}", f"{head}int main() {{\n{''.join(pieces)}}}\n"


def main(*arguments: str) -> None:
    if arguments:
        page, *targets = map(Path, arguments)
        for target, text in zip(targets, cpp(page), strict=True):
            target.write_text(text)
        return
    for block in all_blocks():
        if block.reason:
            place = f"{block.page.relative_to(REPOSITORY)}:{block.line}"
            print(f"{place}: {block.language}: {block.reason}")


if __name__ == "__main__":
    main(*sys.argv[1:])

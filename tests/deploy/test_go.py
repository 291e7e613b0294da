"""Stubs that Go's generators make of the protos are a client."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import REPOSITORY, program
from shown_code import blocks
from waiting import listens

GO = REPOSITORY / "client/go"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    socket = tmp_path / "socket"
    # time: the client runs to its end
    with subprocess.Popen(
        [program("tensord"), f"--listen=unix:{socket}", "--threads=1"], stderr=subprocess.DEVNULL
    ) as server:
        try:
            assert listens(socket)
            yield f"unix:{socket}"
        finally:
            server.kill()


def test_a_client_of_stubs_contracts(address: str, tmp_path: Path) -> None:
    cache = REPOSITORY / "build/tools/go-cache"
    subprocess.run([GO / "build", tmp_path], env=os.environ | {"GOCACHE": str(cache)}, check=True)
    done = subprocess.run([tmp_path / "contract", address], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "computed by cpu." in done.stdout
    missing = subprocess.run([tmp_path / "contract", address + "x"], capture_output=True, text=True)
    assert missing.returncode == 1 and missing.stderr


def test_what_the_page_shows_is_of_the_program() -> None:
    code = textwrap.dedent((GO / "main.go").read_text())
    lines = {" ".join(line.split()) for line in code.splitlines()}
    shown = [block for block in blocks(GO / "README.md") if block.language == "go"]
    assert len(shown) == 2
    for block in shown:
        for line in block.text.splitlines():
            assert " ".join(line.split()) in lines, line

"""The documentation's site is made, holds together, and needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
from places import REPOSITORY

SITE = REPOSITORY / "build/site"


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    made = subprocess.run(
        [REPOSITORY / "deploy/docs/build"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert made.returncode == 0, made.stdout
    return sorted(SITE.rglob("*.html"))


def test_every_page_of_the_documentation_is_there(pages: list[Path]) -> None:
    made = {str(page.relative_to(SITE)) for page in pages}
    for page in (REPOSITORY / "deploy/docs").glob("*.md"):
        assert f"deploy/docs/{page.stem}.html" in made
    assert {"index.html", "reference/grpc.html", "reference/python.html"} <= made


def test_nothing_is_loaded_from_elsewhere(pages: list[Path]) -> None:
    for page in pages:
        loaded = re.findall(r'<(?:script|img)[^>]* src="([^"]+)"', page.read_text())
        loaded += re.findall(r'<link[^>]* rel="stylesheet"[^>]* href="([^"]+)"', page.read_text())
        assert loaded
        assert not [each for each in loaded if "//" in each], page


def test_links_and_pictures_lead_somewhere(pages: list[Path]) -> None:
    count = 0
    for page in pages:
        if page.name == "404.html":  # served from anywhere, its links are those of the root
            continue
        for link in re.findall(r'(?:href|src)="([^":#?]+)(?:[#?][^"]*)?"', page.read_text()):
            assert (page.parent / unquote(link)).exists(), f"{page}: {link}"
            count += link.endswith(".svg")
    assert count > 12


def test_words_of_the_pages_are_found(pages: list[Path]) -> None:
    index = json.loads((SITE / "search/search_index.json").read_text())
    titles = {each["title"] for each in index["docs"]}
    assert {"A tour in ten minutes", "Out of memory", "The life of a request"} <= titles


def test_references_have_every_rpc_and_the_python_session(pages: list[Path]) -> None:
    grpc = (SITE / "reference/grpc.html").read_text()
    for proto in (REPOSITORY / "proto/tensord/v1").glob("*.proto"):
        for rpc in re.findall(r"^  rpc (\w+)\(", proto.read_text(), re.MULTILINE):
            assert f">{rpc}<" in grpc, rpc
    assert "Session.einsum" in (SITE / "reference/python.html").read_text()

"""Pages name what is there, and pictures are as their scripts draw them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from places import DEPLOY, REPOSITORY
from shown_code import pages

PAGES = pages()


def said(*command: str) -> str:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def anchors(page: Path) -> set[str]:
    """Of headings, as GitHub and mkdocs make them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", title.lower()).strip() for title in titles)
    return {re.sub(r" +", "-", each) for each in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_and_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for link, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", code):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"
    for name in re.findall(r"`((?:deploy|tests)/[\w./-]+[\w])`", text):
        assert (REPOSITORY / name).exists(), name


def test_the_page_on_kubernetes_has_every_overlay() -> None:
    page = (DEPLOY / "docs/kubernetes.md").read_text()
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(named) == sorted(
        folder.name for folder in (DEPLOY / "kubernetes/overlays").iterdir()
    )


def test_pictures_and_tables_are_what_their_scripts_make(tmp_path: Path) -> None:
    docs = DEPLOY / "docs"
    said("python3", str(docs / "draw.py"), str(tmp_path / "pictures"))
    said("python3", str(docs / "performance.py"), str(tmp_path))
    made = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(made) > 8
    for file in made:
        assert file.read_text() == (docs / file.relative_to(tmp_path)).read_text(), file.name


def test_figures_of_the_front_page_are_in_the_files_that_it_names() -> None:
    rows = re.findall(
        r"^\| (.+) \| (.+) \| \[.+\]\((tests/benchmarks/results/.+\.md)\) \|$",
        (REPOSITORY / "README.md").read_text(),
        re.MULTILINE,
    )
    assert len(rows) > 10
    for _, figures, name in rows:
        results = (REPOSITORY / name).read_text()
        assert "**Void**" not in results, name
        for figure in re.findall(r"[\d.]*\d", figures):
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\.?\d)", results), figure


def test_all_that_has_a_version_has_the_same() -> None:
    (version,) = re.findall(
        r"project\(tensord VERSION ([0-9.]+)", (REPOSITORY / "CMakeLists.txt").read_text()
    )
    places = {
        "client/python/pyproject.toml": r'^version = "(.+)"$',
        "client/python/tensord/__init__.py": r'^__version__ = "(.+)"$',
        "deploy/helm/tensord/Chart.yaml": r'^appVersion: "(.+)"$',
    }
    for name, pattern in places.items():
        text = (REPOSITORY / name).read_text()
        assert re.findall(pattern, text, re.MULTILINE) == [version], name

"""Pages of deploy/ name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from places import DEPLOY, REPOSITORY

PAGES = sorted(DEPLOY.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DEPLOY)))
def test_links_and_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link
    for name in re.findall(r"`((?:deploy|tests)/[\w./-]+[\w])`", text):
        assert (REPOSITORY / name).exists(), name


def test_the_page_on_kubernetes_has_every_overlay() -> None:
    page = (DEPLOY / "docs/kubernetes.md").read_text()
    named = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(named) == sorted(
        folder.name for folder in (DEPLOY / "kubernetes/overlays").iterdir()
    )


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

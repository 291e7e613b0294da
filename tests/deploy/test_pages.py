"""Pages name what is there, pictures are as their scripts draw them, and versions are one."""

from __future__ import annotations

import html
import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from packaging.version import Version

import draw_tour
from places import DEPLOY, REPOSITORY, program
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


def test_terminals_of_the_tour_show_the_commands_of_the_page() -> None:
    drawn = [(block, name) for block, name in draw_tour.pictures() if name]
    assert len(drawn) > 5
    for block, name in drawn:
        picture = html.unescape((draw_tour.PICTURES / f"{name}.svg").read_text())
        for line in block.text.splitlines():
            assert f">$ {line}"[: draw_tour.MOST_COLUMNS] in picture, f"{name}: {line}"


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


def test_what_has_a_version_has_that_of_the_checkout() -> None:
    number = said("deploy/version").partition(".dev")[0].partition("+")[0]
    assert re.fullmatch(r"\d+\.\d+\.\d+", number)
    programs = [program(name) for name in ("tensord", "tensorctl", "tensord-load")]
    versions = [said(each, "--version") for each in programs]
    assert len(set(versions)) == 1
    (chart,) = re.findall("^version: (.+)$", (DEPLOY / "helm/tensord/Chart.yaml").read_text(), re.M)
    assert chart == number
    # The commit is that of the last time that CMake, or pip, ran.
    for version in versions[0], importlib.metadata.version("tensord"):
        assert re.fullmatch(rf"{re.escape(number)}(\.dev\d+\+g[0-9a-f]{{10,}})?", version)


def commit(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    return said("git", "-C", str(folder), *identity, *arguments)


def test_the_version_is_made_of_tag_commit_or_archive(tmp_path: Path) -> None:
    for name in "version", ".gitattributes":
        (tmp_path / "deploy").mkdir(exist_ok=True)
        shutil.copy(DEPLOY / name, tmp_path / "deploy")
    version = str(tmp_path / "deploy/version")
    number = said(version)
    assert "+" not in number
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "one"]):
        commit(tmp_path, *arguments)
    revision, seconds = commit(tmp_path, "log", "-1", "--abbrev=10", "--format=%h %ct").split()
    before = f"{number}.dev{seconds}+g{revision}"
    assert said(version) == before
    archive = tmp_path / "archive.tar"
    commit(tmp_path, "archive", "--output", str(archive), "HEAD")
    (tmp_path / "unpacked").mkdir()
    said("tar", "-C", str(tmp_path / "unpacked"), "-xf", str(archive))
    of_archive = said(str(tmp_path / "unpacked/deploy/version"))
    assert re.fullmatch(rf"{re.escape(number)}\.dev{seconds}\+g[0-9a-f]{{7,}}", of_archive)
    commit(tmp_path, "tag", f"v{number}")
    assert said(version) == number
    # Of pip and of dpkg (deploy/packages) the release comes behind what came before it.
    later = before.replace(seconds, str(int(seconds) + 1)).replace("+g", "+g0")
    assert Version(before) < Version(later) < Version(number)
    for first, second in ((before, later), (later, number)):
        of_debian = (first.replace(".dev", "~dev"), "lt", second.replace(".dev", "~dev"))
        subprocess.run(["dpkg", "--compare-versions", *of_debian], check=True)

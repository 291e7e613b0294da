"""The types of the client are right, as two checkers see them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

import tensord


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The package as installed, generated stubs included, and its settings."""
    shutil.copytree(Path(tensord.__file__).parent, tmp_path / "tensord")
    shutil.copy(REPOSITORY / "client/python/pyproject.toml", tmp_path)
    return tmp_path


def check(project: Path, *command: str) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout


def misuse(project: Path) -> None:
    """Adds a file with one mistake."""
    (project / "tensord" / "_misuse.py").write_text(
        "from tensord import Session\n\n\n"
        "def misuse(session: Session) -> str:\n"
        '    return session.einsum("ij->ji", [[1.0]])\n'
    )


@pytest.mark.parametrize(
    "command",
    [("mypy", "-p", "tensord"), ("basedpyright", "--pythonpath", sys.executable)],
    ids=["mypy", "pyright"],
)
def test_types_fit_together(project: Path, command: tuple[str, ...]):
    check(project, *command)
    misuse(project)
    with pytest.raises(AssertionError, match="_misuse.py.*RemoteTensor"):
        check(project, *command)

"""All code that the documents show runs; shown_code.py says how they show what does not."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shown_code
import tensord
from conftest import REPOSITORY
from shown_code import SHELL, Block, all_blocks, ports_of_ours
from waiting import eventually

BINARIES = Path(os.environ["TENSORD_SERVER"]).parent
CPP_PAGE = REPOSITORY / "client/cpp/README.md"
NOTATION = REPOSITORY / "deploy/docs/notation.md"
START = "tensord --listen=localhost:8470 2>server.log &\nuntil tensorctl health; do sleep 0.05; done\n"
LANGUAGES = {"python", "sh", "cpp", "toml"}

def to_run(*languages: str) -> dict[Path, list[Block]]:
    """Blocks of these languages that are to run, by page."""
    found: dict[Path, list[Block]] = {}
    for block in all_blocks(*languages):
        if not block.reason:
            found.setdefault(block.page, []).append(block)
    return found


def by_page(*languages: str) -> pytest.MarkDecorator:
    """Gives a test the pages that show such code."""
    return pytest.mark.parametrize(
        "page", to_run(*languages), ids=lambda page: str(page.relative_to(REPOSITORY))
    )


def test_documents_are_those_that_git_knows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(shown_code, "REPOSITORY", tmp_path)
    known, gone, beside = (tmp_path / name for name in ("known.md", "gone.md", "other/beside.md"))
    beside.parent.mkdir()
    for page in known, gone, beside:
        page.touch()
    assert set(shown_code.documents()) == {known, gone, beside}
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "add", known, gone], check=True)
    gone.unlink()
    assert shown_code.documents() == [known]


def test_code_is_in_a_language_that_is_run_or_says_why_it_is_not() -> None:
    for block in all_blocks():
        place = f"{block.page}:{block.line}"
        assert block.reason or block.language in LANGUAGES | {"", "text"}, place
        for name in re.findall(r"`((?:tests|deploy)/[^`]+)`", block.reason):
            assert (REPOSITORY / name).exists(), place
    assert set(to_run("cpp")) == {CPP_PAGE}


@by_page("python")
def test_python_runs(page: Path, private_address, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"np": np, "tensord": tensord}
    with tensord.connect(private_address) as session:
        for block in to_run("python")[page]:
            names["session"] = session
            text = block.text.replace("localhost:8470", private_address)
            exec(compile("\n" * (block.line - 1) + text, page, "exec"), names)


def pairs(text: str) -> list[tuple[str, str]]:
    """Two expressions on lines that stand by themselves."""
    found = []
    for paragraph in text.split("\n\n"):
        statements = ast.parse(paragraph).body
        if len(statements) == 2 and all(isinstance(s, ast.Expr) for s in statements):
            left, right = (ast.unparse(statement) for statement in statements)
            found.append((left, right))
    return found


def test_index_notation_is_equal_to_what_numpy_computes(session) -> None:
    names = {"np": np, "tensord": tensord, "session": session}
    count = 0
    for block in to_run("python")[NOTATION]:
        for paragraph in block.text.split("\n\n"):
            if not pairs(paragraph):
                exec(paragraph, names)
            for ours, theirs in pairs(paragraph):
                result, expected = np.asarray(eval(ours, names)), eval(theirs, names)
                assert result.shape == np.shape(expected), ours
                # Sums of at most a hundred products of numbers of a few units.
                np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12, err_msg=ours)
                count += 1
    assert count > 40


@by_page("sh")
def test_shell_runs(page: Path, tmp_path: Path) -> None:
    for name in "client", "deploy", "build":
        (tmp_path / name).symlink_to(REPOSITORY / name)
    script = "".join(block.text for block in to_run("sh")[page])
    starts = re.search(r"^tensord ", script, re.MULTILINE)
    script, ports = ports_of_ours(SHELL + ("" if starts else START) + script)
    environment = {
        "TENSORD_ADDRESS": f"localhost:{ports['8470']}",
        "PATH": f"{BINARIES}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    # time: it runs to its end, by itself
    with (tmp_path / "said").open("w") as said, subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ | environment,
        start_new_session=True,
        stdout=said,
        stderr=subprocess.STDOUT,
    ) as shell:
        try:
            assert eventually(lambda: shell.poll() is not None, 120)
        finally:
            with contextlib.suppress(ProcessLookupError):  # there is nobody left
                os.killpg(shell.pid, signal.SIGKILL)  # time: it has ended
    assert shell.returncode == 0, (tmp_path / "said").read_text()


@by_page("toml")
def test_files_of_options_and_tenants_are_good(page: Path, tmp_path: Path) -> None:
    for number, block in enumerate(to_run("toml")[page]):
        file = tmp_path / f"{number}.toml"
        file.write_text(block.text)
        options = [f"--config={file}"]
        if "[tenant." in block.text:
            (tmp_path / "tokens").touch()
            options = [f"--tenants={file}", f"--tokens={tmp_path}/tokens"]
        done = subprocess.run(
            [os.environ["TENSORD_SERVER"], "--check-config", *options],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", ["tensord_shown_program", "tensord_shown_pieces"])
def test_cpp_runs(program: str, private_address: str) -> None:
    done = subprocess.run(
        [BINARIES / program],
        env=os.environ | {"TENSORD_ADDRESS": private_address},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr

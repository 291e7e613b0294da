"""Flags, variables and a file together make a server's configuration."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

import tensord


def run(*flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the server says to these flags and variables of its environment."""
    return subprocess.run(
        [os.environ["TENSORD_SERVER"], *flags],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is right."""
    path = tmp_path / "tensord.toml"
    path.write_text('threads = 1\nmax-sessions = 7\nmemory-limit-bytes = "64MiB"\n')
    return path


def test_a_server_takes_flags_before_variables_before_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TENSORD_CONFIG", str(file))
    monkeypatch.setenv("TENSORD_MAX_SESSIONS", "8")
    with (
        tensord.serve(memory_limit_bytes="32MiB") as address,
        tensord.connect(address) as session,
    ):
        info = session.info()
        assert info.devices[0].thread_count == 1
        assert info.devices[0].memory_bytes == 32 << 20
        assert info.limits.max_sessions == 8


def test_what_is_printed_is_toml_and_says_where_it_comes_from(file: Path):
    printed = run(f"--config={file}", "--print-config", TENSORD_THREADS="3")
    assert printed.returncode == 0
    values = tomllib.loads(printed.stdout)
    assert values["threads"] == 3
    assert values["max-sessions"] == 7
    assert values["listen"] == ["localhost:8470"]
    lines = printed.stdout.splitlines()
    assert "threads = 3  # environment, TENSORD_THREADS" in lines
    assert f"max-sessions = 7  # {file}:2" in lines
    assert "queue-limit = 1024  # default" in lines
    file.write_text(printed.stdout)
    again = run(f"--config={file}", "--print-config")
    assert tomllib.loads(again.stdout) == values


def test_every_flag_is_a_key(file: Path):
    help_text = run("--help").stdout
    flags = {word for word in help_text.split() if word.startswith("--")}
    verbs = {"--help", "--version", "--config", "--print-config", "--check-config"}
    printed = run("--print-config").stdout
    for flag in {flag.strip(".,:()") for flag in flags} - verbs:
        assert f"{flag.removeprefix('--')} " in printed, flag


def test_checking_ends_with_a_status_for_scripts(file: Path):
    assert run(f"--config={file}", "--check-config").returncode == 0
    file.write_text("threads = 1\nmax-session = 7\n")
    wrong = run(f"--config={file}", "--check-config")
    assert wrong.returncode == 2
    message = f"{file}:2: unknown key 'max-session', did you mean 'max-sessions'?"
    assert message in wrong.stderr
    assert wrong.stdout == ""
    secret = "--plan-exchange-password-file=/nowhere/secret"
    assert "/nowhere/secret" in run("--check-config", secret).stderr

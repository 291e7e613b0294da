"""The examples run and agree with what they compare themselves to."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensord
from conftest import REPOSITORY

README = REPOSITORY / "client/python/README.md"
EXAMPLES = REPOSITORY / "client/python/examples"
WATER = REPOSITORY / "client/data/water-ccpvdz"


def run(example: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / example, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_first_contraction_sums(address):
    result = run("first_contraction.py", address)
    assert result.returncode == 0, result.stderr
    total = float(result.stdout.split()[-1])
    # 500 * 300 sums of 2400 products of numbers from [0, 1).
    assert 0.9 < total / (500 * 300 * 2400 / 4) < 1.1


def test_stubs_alone_suffice(address):
    result = run("stubs_only.py", address)
    assert result.returncode == 0, result.stderr
    assert "computed by" in result.stdout


@pytest.mark.parametrize("private", [True, False])
def test_mp2_energy_of_water(address, private: bool):
    result = run("mp2.py", WATER, *([] if private else ["--address", address]))
    assert result.returncode == 0, result.stdout + result.stderr
    energy = float(re.search(r"energy (-[\d.]+)", result.stdout).group(1))
    known = json.loads((WATER / "reference.json").read_text())
    assert abs(energy - known["energy_mp2_correlation"]) <= 1e-9
    assert re.fullmatch(
        r"energy (-0\.\d{11})\d  reference \1\d  difference \d\.\de[+-]\d\d hartree",
        result.stdout.splitlines()[-1],
    ), result.stdout
    assert "numpy.einsum" in result.stdout and "pqrs,pi->iqrs" in result.stdout


def test_mp2_notices_a_wrong_energy(address, tmp_path: Path):
    folder = shutil.copytree(WATER, tmp_path / "water")
    known = json.loads((folder / "reference.json").read_text())
    known["energy_mp2_correlation"] += 1e-8
    (folder / "reference.json").write_text(json.dumps(known))
    assert run("mp2.py", folder, "--address", address).returncode == 1
    (folder / "reference.json").unlink()
    result = run("mp2.py", folder, "--address", address, "--occupied", 5)
    assert result.returncode == 0, result.stdout + result.stderr


def test_mp2_is_short():
    assert len((EXAMPLES / "mp2.py").read_text().splitlines()) < 60


def test_what_the_readme_shows_runs(private_address, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) > 5
    names = {"np": np, "tensord": tensord}
    with tensord.connect(private_address) as session:
        for block in blocks:
            names["session"] = session
            exec(block.replace("localhost:8470", private_address), names)

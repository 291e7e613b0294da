"""The examples run and agree with what they compare themselves to."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib.colors
import matplotlib.image
import numpy as np
import pytest

from conftest import REPOSITORY
from waiting import eventually

EXAMPLES = REPOSITORY / "client/python/examples"
WATER = REPOSITORY / "client/data/water-ccpvdz"


def run(
    example: str, *arguments: object, **environment: object
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, EXAMPLES / example, *map(str, arguments)]
    environment = {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


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


def test_an_amplitude_by_opt_einsum_is_the_same(address):
    small = "--rows", 4, "--columns", 4, "--cycles", 4
    result = run("side_by_side.py", *small, "--address", address)
    assert result.returncode == 0, result.stdout + result.stderr
    ours, theirs = re.findall(r"^(?:tensord|opt_einsum) +(\S+j)", result.stdout, re.MULTILINE)
    assert abs(complex(ours) - complex(theirs)) <= 1e-5 * 2**-8
    assert re.search(r"tensord is [\d.]+ times as fast", result.stdout)


class JobRow(NamedTuple):
    """What two_jobs.py tells about a job."""

    hit_count: int
    miss_count: int
    hit_percent: float
    saved_milliseconds: float
    tuning_count: int


def job_row(output: str, job: str) -> JobRow:
    line = re.search(
        rf"^{job} +(\d+) +(\d+) +([\d.]+)% +([\d.]+) ms +(\d+)( +[\d.]+ ms){{2}}$",
        output,
        re.MULTILINE,
    )
    assert line, output
    hits, misses, rate, saved, tuning = line.groups()[:5]
    return JobRow(int(hits), int(misses), float(rate), float(saved), int(tuning))


def pixel_count(picture: Path, colour: str) -> int:
    pixels = matplotlib.image.imread(picture)[..., :3]
    distance = np.abs(pixels - np.array(matplotlib.colors.to_rgb(colour)))
    return int(np.count_nonzero(distance.max(-1) < 1 / 255))


def test_the_second_of_two_jobs_has_the_choices_of_the_first(tmp_path: Path):
    png = tmp_path / "curves.png"
    result = run("two_jobs.py", "--scale", 0.4, "--executions", 40, "--png", png)
    assert result.returncode == 0, result.stdout + result.stderr
    contraction_count, execution_count = 6, 6 * 40
    first, second = (job_row(result.stdout, job) for job in ("first", "second"))
    # Each contraction is looked up once more than it is executed, for its plan.
    assert first.miss_count == contraction_count
    assert first.hit_count == execution_count
    assert first.tuning_count >= 3 * contraction_count
    assert second.miss_count == second.tuning_count == 0
    assert second.hit_count == execution_count + contraction_count
    assert second.hit_percent == 100 > first.hit_percent
    assert second.saved_milliseconds > 0
    choices = re.findall(r"->\w* +(\S+)  +(\S+)$", result.stdout, re.MULTILINE)
    assert len(choices) == contraction_count
    assert all(of_first == of_second for of_first, of_second in choices)
    ratios = re.findall(r"second job (.*), ([\d.]+) times the speed", result.stdout)
    assert len(ratios) == 2
    for verdict, ratio in ratios:
        assert verdict in {"faster", "not faster"}
        assert float(ratio) >= 1 if verdict == "faster" else float(ratio) <= 1
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    height, width, _ = matplotlib.image.imread(png).shape
    assert height >= 600 and width >= 1000
    assert pixel_count(png, "tab:orange") > 1000
    assert pixel_count(png, "tab:blue") > 1000


def test_two_jobs_notices_that_the_second_has_to_tune(tmp_path: Path):
    png = tmp_path / "curves.png"
    result = run("two_jobs.py", "--scale", 0.2, "--executions", 2, "--png", png)
    assert result.returncode == 1, result.stdout + result.stderr
    second = job_row(result.stdout, "second")
    assert second.miss_count > 0 and second.tuning_count > 0
    assert (
        f"did not start warm: {second.miss_count} misses, {second.tuning_count} "
        "executions" in result.stderr
    )
    assert png.exists()


@pytest.mark.parametrize(
    "flags",
    [
        ("--executions", 0),
        ("--executions", -1),
        ("--scale", 0),
        ("--scale", "nan"),
        ("--png", "/nowhere/curves.png"),
        ("--png", "/tmp"),
    ],
    ids=lambda flags: " ".join(map(str, flags)),
)
def test_two_jobs_refuses_what_makes_no_sense(flags: tuple[str, object]):
    result = run("two_jobs.py", *flags)
    assert result.returncode == 2 and flags[0] in result.stderr


@pytest.mark.timing
def test_two_jobs_ends_what_it_has_started(tmp_path: Path):
    flags = ["--executions", "100000", "--png", str(tmp_path / "curves.png")]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, EXAMPLES / "two_jobs.py", *flags],
        env=environment,
        start_new_session=True,
    ) as process:
        assert eventually(lambda: any(tmp_path.glob("tensord-*")))
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
        assert eventually(lambda: not members_of(process.pid))
    assert not any(tmp_path.iterdir())


def members_of(group: int) -> list[str]:
    """Commands of a group's processes that live."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            command, fields = path.read_text().rsplit(")", 1)
            state, _, pgrp, *_ = fields.split()
            if int(pgrp) == group and state != "Z":
                members.append(command)
    return members


def test_two_jobs_says_when_the_redis_had_the_plans_before(redis, tmp_path: Path):
    flags = "--redis", redis.address, "--scale", 0.2, "--png", tmp_path / "curves.png"
    result = run("two_jobs.py", *flags)
    assert result.returncode == 0, result.stdout + result.stderr
    assert job_row(result.stdout, "first").tuning_count > 0
    assert "had the plans before" not in result.stdout
    result = run("two_jobs.py", *flags, "--executions", 2)
    assert result.returncode == 0, result.stdout + result.stderr
    first = job_row(result.stdout, "first")
    assert first.miss_count == first.tuning_count == 0
    assert "this Redis had the plans before" in result.stdout


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("unix:/nowhere/redis", "No such file"),
        ("localhost:1", "refused"),
        ("redis", "HOST:PORT or unix:/PATH"),
    ],
)
def test_two_jobs_refuses_a_redis_that_does_not_answer(
    tmp_path: Path, address: str, reason: str
):
    png = tmp_path / "curves.png"
    result = run("two_jobs.py", "--redis", address, "--png", png)
    assert result.returncode == 1
    assert address in result.stderr and reason in result.stderr
    assert "Traceback" not in result.stderr and not png.exists()


def test_two_jobs_says_what_is_missing(tmp_path: Path):
    result = run("two_jobs.py", PATH=tmp_path)
    assert result.returncode == 1
    assert "there is no redis-server on the PATH" in result.stderr
    assert "--redis" in result.stderr
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    result = run("two_jobs.py", PYTHONPATH=tmp_path)
    assert result.returncode == 1 and "pip install" in result.stderr

"""The CPU image as deploy/image/build leaves it: unpacked, run, loaded, driven into its memory limit, drained.

Not among the tests of tests/run: tests/deploy/run names this file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensord
from container import Container
from places import DEPLOY, REPOSITORY, program

LIMIT_BYTES = 512 << 20
RESULTS: dict[str, Any] = {}


class Image(NamedTuple):
    root: Path
    config: dict[str, Any]


def unpack(archive: Path, folder: Path) -> None:
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", folder], check=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image, built and unpacked."""
    folder = tmp_path_factory.mktemp("image")
    start = time.monotonic()
    options = ["--tag", "tensord-test:cpu", "--programs", str(Path(program("tensord")).parent)]
    done = subprocess.run(
        [DEPLOY / "image/build", "cpu", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    found = re.fullmatch(r"image tensord-test:cpu ([0-9.]+)", done.stdout.splitlines()[-1])
    assert found is not None, done.stdout
    RESULTS["size_mb"] = float(found[1])
    RESULTS["build_seconds"] = round(time.monotonic() - start, 1)
    root = folder / "root"
    root.mkdir()
    archive = folder / "archive"
    archive.mkdir()
    unpack(REPOSITORY / "build/image/tensord-cpu.tar.gz", archive)
    (manifest,) = json.loads((archive / "manifest.json").read_text())
    for layer in manifest["Layers"]:
        unpack(archive / layer, root)
    config = json.loads((archive / manifest["Config"]).read_text())["config"]
    return Image(root, config)


def cgroup(folder: Path) -> Iterator[str]:
    """A control group with the limit, or "" where there are none of version 2."""
    kind = subprocess.run(["stat", "-fc", "%T", "/sys/fs/cgroup"], capture_output=True, text=True)
    if kind.stdout.strip() != "cgroup2fs":
        yield ""
        return
    group = Path("/sys/fs/cgroup/tensord-test")
    group.mkdir()
    (group / "memory.max").write_text(str(2 * LIMIT_BYTES))
    yield str(group)
    group.rmdir()


@pytest.fixture(scope="module")
def container(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A server of the image with little memory."""
    for group in cgroup(tmp_path_factory.mktemp("group")):
        limit = [] if group else [f"--memory-limit-bytes={LIMIT_BYTES}"]
        RESULTS["memory_limit"] = "cgroup" if group else limit[0]
        folder = tmp_path_factory.mktemp("volumes")
        flags = [*limit, "--plan-store=/var/lib/tensord/plans"]
        with Container(image.root, folder / "v", *flags, group=group) as started:
            RESULTS["start_seconds"] = round(started.start_seconds, 2)
            yield started
    RESULTS["date"] = time.strftime("%Y-%m-%d", time.gmtime())
    results = REPOSITORY / "build/results/image.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(RESULTS, indent=1) + "\n")
    print(f"\nresults/image.json: {json.dumps(RESULTS)}")


def test_the_image_is_small(image: Image) -> None:
    assert RESULTS["size_mb"] < 80


def test_the_image_says_what_it_is(image: Image) -> None:
    labels = image.config["Labels"]
    said = subprocess.run([program("tensord"), "--version"], capture_output=True, text=True)
    assert labels["org.opencontainers.image.version"] == said.stdout.strip()
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", labels["org.opencontainers.image.revision"])
    assert image.config["User"] == "65532:65532"
    assert image.config["Entrypoint"] == ["/usr/bin/tensord"]
    assert image.config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/tensorctl", "health"]
    for name in ("run/tensord", "var/lib/tensord"):
        assert (image.root / name).stat().st_uid == 65532
    assert (image.root / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert (image.root / "usr/bin/tensord").stat().st_uid == 0


def test_it_serves_without_rights(container: Container) -> None:
    assert container.is_healthy()
    assert container.root_is_read_only()
    assert container.status("Uid") == ["65532"] * 4
    assert container.status("CapEff") == ["0000000000000000"]


def test_it_computes_the_main_job(container: Container) -> None:
    example = REPOSITORY / "client/python/examples/mp2.py"
    data = REPOSITORY / "client/data/water-ccpvdz"
    done = subprocess.run(
        [sys.executable, example, data, "--address", container.address],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_beyond_its_memory_it_refuses_and_lives(container: Container) -> None:
    with tensord.connect(container.address) as session:
        kept = []
        with pytest.raises(tensord.errors.ResourceExhausted):
            for _ in range(64):
                kept.append(session.upload(np.ones(LIMIT_BYTES // 8 // 8)))
        assert 4 <= len(kept) < 64
        assert container.is_healthy()
        kept.clear()
    with tensord.connect(container.address) as session:
        assert session.einsum("ij->", np.ones((100, 100))).numpy() == 10000


def test_sigterm_lets_what_runs_end(container: Container) -> None:
    a = np.random.default_rng(1).random((2600, 2600))
    with tensord.connect(container.address) as session:
        left, right = session.upload(a), session.upload(a)
        answers: list[object] = []

        def compute() -> None:
            answers.append(session.einsum("ij,jk->ik", left, right))

        thread = threading.Thread(target=compute)
        thread.start()
        time.sleep(0.15)
        start = time.monotonic()
        container.terminate()
        assert container.process.wait(timeout=20) == 0
        RESULTS["drain_seconds"] = round(time.monotonic() - start, 2)
        thread.join()
    assert len(answers) == 1
    assert "draining" in container.log() and "plan_store_saved" in container.log()
    assert container.volume("var/lib/tensord/plans").stat().st_size > 0

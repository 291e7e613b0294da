"""Debian packages, the archive, the CMake package and the wheel, made, installed and used.

Not among the tests of tests/run: tests/deploy/run names this file.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from container import is_mounted
from places import REPOSITORY, program
from waiting import eventually, listens

BUILD = Path(program("tensord")).parents[1]
MAIN_JOB = (
    REPOSITORY / "client/python/examples/mp2.py",
    REPOSITORY / "client/data/water-ccpvdz",
)


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        command,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what cpack makes of what is compiled."""
    folder = tmp_path_factory.mktemp("packages")
    for generator in ("DEB", "TGZ"):
        run("cpack", "-G", generator, "--config", BUILD / "CPackConfig.cmake", "-B", folder)
    return folder


@pytest.fixture(scope="module")
def debian(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A minimal Debian 12 in which all packages for CPUs are installed, and a compiler."""
    root = tmp_path_factory.mktemp("debian") / "root"
    install = "apt-get install -y -qq --no-install-recommends"
    debs = (f"{packages}/{name}_*.deb" for name in ("tensord", "tensord-cli", "libtensord-dev"))
    hook = " && ".join(
        (
            f'cp {" ".join(debs)} "$1/root"',
            f'chroot "$1" sh -c "{install} systemd cmake g++ ninja-build /root/*.deb"',
        )
    )
    sources = run(
        *["apt-get", "indextargets", "--format", "deb $(SITE) $(RELEASE) $(COMPONENT)"],
        *["Created-By: Packages", "Origin: Debian"],
    )
    debian = sorted(line for line in set(sources.splitlines()) if line.endswith(" main"))
    run(
        *["mmdebstrap", "--quiet", "--variant=minbase", f"--customize-hook={hook}"],
        *["bookworm", str(root), *debian],
    )
    yield root
    for place in ("proc", "dev"):
        if is_mounted(str(root / place)):
            run("umount", "--lazy", root / place)


def test_packages_install_in_a_minimal_debian_and_the_unit_serves(debian: Path) -> None:
    units = debian / "usr/lib/systemd/system"
    assert (units / "tensord.socket").exists()
    unit = (units / "tensord.service").read_text()
    found = re.search(r"^ExecStart=(.+)$", unit, re.MULTILINE)
    assert found is not None
    owner = run("chroot", debian, "getent", "passwd", "tensord").split(":")
    assert owner[5] == "/var/lib/tensord"
    for folder in ("run/tensord", "var/lib/tensord"):  # RuntimeDirectory, StateDirectory
        (debian / folder).mkdir()
        os.chown(debian / folder, int(owner[2]), int(owner[3]))
    (debian / "etc/hosts").write_text("127.0.0.1 localhost\n")
    run("mount", "--bind", "/dev", debian / "dev")
    run("mount", "-t", "proc", "proc", debian / "proc")
    command = ["chroot", "--userspec=tensord:tensord", debian, *found[1].split()]
    with (debian / "tmp/log").open("wb") as log:
        server = subprocess.Popen(
            command,
            env={"PATH": os.environ["PATH"], "TENSORD_METRICS_LISTEN": "localhost:0"},
            stderr=log,
        )
    try:
        said = (debian / "tmp/log").read_text
        assert eventually(lambda: "version=" in said() or server.poll() is not None)
        assert server.poll() is None, said()
        (address,) = re.findall(r" listening address=(\S+) version=", said())
        assert address == "unix:/run/tensord/socket"  # which is its group's
        assert (debian / "run/tensord/socket").stat().st_mode & 0o777 == 0o660
        run("chroot", debian, "tensorctl", "--address=unix:/run/tensord/socket", "health")
        run(sys.executable, *MAIN_JOB, "--address", f"unix:{debian}/run/tensord/socket")
        server.terminate()
        assert server.wait(timeout=20) == 0
        assert (debian / "var/lib/tensord/plans").stat().st_size > 0
    finally:
        server.kill()
        server.wait()


def test_options_that_were_changed_stay_when_the_package_is_installed_again(debian: Path) -> None:
    options = debian / "etc/tensord/tensord.toml"
    options.write_text(options.read_text() + "\nmax-sessions = 7\n")
    run("chroot", debian, "sh", "-c", "dpkg -i /root/tensord_*.deb")
    assert "max-sessions = 7" in options.read_text()
    run("chroot", debian, "dpkg", "--remove", "tensord")
    assert not (debian / "usr/bin/tensord").exists() and options.exists()
    run("chroot", debian, "dpkg", "--purge", "tensord")
    assert not options.exists() and not (debian / "var/lib/tensord").exists()


def test_the_archive_runs_from_where_it_is_unpacked(packages: Path, tmp_path: Path) -> None:
    (archive,) = packages.glob("tensord-*.tar.gz")
    run("tar", "--extract", "--file", archive, "--directory", tmp_path)
    server = tmp_path / "bin/tensord"
    assert run(server, "--version") == run(program("tensord"), "--version")
    run(sys.executable, *MAIN_JOB, TENSORD_SERVER=str(server))


CONSUMER = REPOSITORY / "tests/deploy/consumer"


@contextlib.contextmanager
def served(socket: Path) -> Iterator[None]:
    """The server that was compiled, at a socket."""
    with subprocess.Popen(
        [program("tensord"), f"--listen=unix:{socket}"], stderr=subprocess.DEVNULL
    ) as server:
        try:
            assert listens(socket)
            yield
        finally:
            server.kill()


def test_a_program_of_others_finds_the_client(tmp_path: Path) -> None:
    run("cmake", "--install", BUILD, "--prefix", tmp_path / "prefix", "--component", "dev")
    prefix = f"-DCMAKE_PREFIX_PATH={tmp_path}/prefix"
    run("cmake", "-S", CONSUMER, "-B", tmp_path / "build", "-G", "Ninja", prefix)
    run("cmake", "--build", tmp_path / "build")
    with served(tmp_path / "socket"):
        assert run(tmp_path / "build/consumer", f"unix:{tmp_path}/socket") == "12\n"


def test_the_package_has_all_that_a_program_of_others_is_compiled_with(debian: Path) -> None:
    shutil.copytree(CONSUMER, debian / "root/consumer")
    run("chroot", debian, "cmake", "-S", "/root/consumer", "-B", "/root/build", "-G", "Ninja")
    run("chroot", debian, "cmake", "--build", "/root/build")
    with served(debian / "tmp/socket"):
        assert run("chroot", debian, "/root/build/consumer", "unix:/tmp/socket") == "12\n"


USER = """
import numpy as np
import tensord


def trace(session: tensord.Session, matrix: tensord.RemoteTensor) -> float:
    return float(session.einsum("ii->", matrix))


with tensord.serve(threads=1) as address, tensord.connect(address) as session:
    print(tensord.__version__, trace(session, session.upload(np.eye(3))))
"""


def test_the_wheel_is_typed_and_works_where_nothing_else_is(tmp_path: Path) -> None:
    source = REPOSITORY / "client/python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, source)
    (wheel,) = tmp_path.glob("tensord-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {file.stem for file in (REPOSITORY / "proto/tensord/v1").glob("*.proto")}
    stubs = {f"tensord/v1/{name}_pb2{end}" for name in modules for end in (".py", ".pyi", "_grpc.py")}
    assert {"tensord/py.typed", "tensord/aio/__init__.py"} | stubs <= names
    run("/usr/bin/python3", "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", wheel, "mypy")
    (tmp_path / "user.py").write_text(USER)
    said = run(python, tmp_path / "user.py", TENSORD_SERVER=program("tensord"))
    assert said.split() == [run(REPOSITORY / "deploy/version").strip(), "3.0"]
    run(python, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", tmp_path / "user.py")
    (tmp_path / "wrong.py").write_text(USER.replace("np.eye(3)", "trace"))
    wrong = subprocess.run(
        [python, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", tmp_path / "wrong.py"],
        capture_output=True,
        text=True,
    )
    assert wrong.returncode == 1 and '"upload"' in wrong.stdout

"""Images: their root file system holds what a server needs, and no more. tests/deploy/run builds them whole."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from container import Container
from places import DEPLOY, program

LAST_STAGE = re.compile(r"^FROM scratch\n.*", re.MULTILINE | re.DOTALL)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and other users need root")


def last_stage(kind: str) -> str:
    found = LAST_STAGE.search((DEPLOY / f"image/Containerfile.{kind}").read_text())
    assert found is not None
    return found[0]


def test_both_images_are_for_nobody_in_particular_and_checked_for_health() -> None:
    for kind in ("cpu", "cuda"):
        stage = last_stage(kind)
        assert "\nUSER 65532:65532\n" in stage and "\nENTRYPOINT " in stage
        assert 'CMD ["/usr/bin/tensorctl", "health"]' in stage
        assert "RUN" not in stage  # there is no shell
    cuda = re.sub(r" \\\n    LD_LIBRARY_PATH=.*", "", last_stage("cuda"))
    assert cuda.replace("NVIDIA GPUs and CPUs", "CPUs") == last_stage("cpu")


def test_both_images_are_compiled_where_their_libraries_are_from() -> None:
    for kind in ("cpu", "cuda"):
        text = (DEPLOY / f"image/Containerfile.{kind}").read_text()
        assert re.findall(r"^FROM (\S+) AS build$", text, re.MULTILINE) == ["debian:12"]
        (step,) = re.findall(r"^RUN apt-get (?:.+\\\n)+.+$", text, re.MULTILINE)
        assert f"deploy/image/rootfs {kind} build/release/bin" in step


def test_a_wrong_kind_or_option_is_refused() -> None:
    for arguments, said in (
        ([], "got '', wanted cpu or cuda"),
        (["gpu"], "got 'gpu', wanted cpu or cuda"),
        (["cpu", "--tags", "a:b"], "there is no option '--tags'"),
        (["cpu", "--tag"], "--tag wants a value"),
        (["cpu", "--tag", "No Name"], "--tag is 'No Name', wanted [HOST:PORT/]NAME:TAG"),
        (["cpu", "--programs", "/nowhere"], "there is no program tensord in /nowhere"),
    ):
        done = subprocess.run([DEPLOY / "image/build", *arguments], capture_output=True, text=True)
        assert done.returncode != 0 and said in done.stderr


def test_help_is_no_mistake() -> None:
    for arguments in (["--help"], ["cpu", "--help"]):
        done = subprocess.run([DEPLOY / "image/build", *arguments], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == ""
        assert "deploy/image/build cpu|cuda" in done.stdout


def test_a_tag_may_name_a_registry_with_a_port(tmp_path: Path) -> None:
    options = ["--tag", "registry:5000/team/tensord:cpu", "--cublas", str(tmp_path)]
    done = subprocess.run([DEPLOY / "image/build", "cpu", *options], capture_output=True, text=True)
    assert f"there is no libcublasLt.so.* in {tmp_path}" in done.stderr  # what is looked at next


def test_a_library_that_is_nowhere_is_told(tmp_path: Path) -> None:
    library = tmp_path / "libgone.so"
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    for name in ("tensord", "tensorctl"):
        link = ["-Wl,--no-as-needed", str(library), "-o", str(tmp_path / name)]
        source = b"int main(void) { return 0; }\n"
        subprocess.run(["cc", "-x", "c", "-", "-x", "none", *link], input=source, check=True)
    library.unlink()
    done = subprocess.run(
        [DEPLOY / "image/rootfs", "cpu", tmp_path, tmp_path / "root"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "libgone.so => not found" in done.stderr


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of a CPU image, of what was compiled."""
    root = tmp_path_factory.mktemp("image") / "root"
    programs = Path(program("tensord")).parent
    subprocess.run([DEPLOY / "image/rootfs", "cpu", programs, root], check=True)
    subprocess.run([DEPLOY / "image/sbom", root, "0123abcd"], check=True)
    return root


@needs_root
def test_a_server_runs_in_it_read_only_and_without_rights(root: Path, tmp_path: Path) -> None:
    with Container(root, tmp_path / "volumes", "--devices=cpu", "--threads=1") as container:
        assert container.is_healthy()
        assert "OpenBLAS" in container.log()
        assert container.root_is_read_only()
        assert container.status("Uid") == ["65532"] * 4
        assert container.status("CapEff") == ["0000000000000000"]
        assert container.status("NoNewPrivs") == ["1"]
        container.terminate()
        assert container.process.wait(timeout=20) == 0


@needs_root
def test_it_has_no_shell_no_setuid_and_nothing_of_strangers(root: Path) -> None:
    files = [file for file in root.rglob("*") if file.is_file() and not file.is_symlink()]
    programs = {file.name for file in files if file.parent == root / "usr/bin"}
    assert programs == {"tensord", "tensorctl", "sleep"}
    assert [file for file in files if file.stat().st_mode & 0o6000] == []
    writable = [file for file in files if file.stat().st_uid != 0]
    assert writable == []


@needs_root
def test_the_bill_of_materials_has_every_program_and_library(root: Path) -> None:
    document = json.loads((root / "usr/share/doc/tensord/sbom.spdx.json").read_text())
    assert document["spdxVersion"] == "SPDX-2.3"
    packages = {each["name"]: each["versionInfo"] for each in document["packages"]}
    assert {"tensord", "libc6", "libgrpc29", "libssl3"} <= set(packages)
    listed = {
        each["fileName"]: {c["algorithm"]: c["checksumValue"] for c in each["checksums"]}
        for each in document["files"]
    }
    libraries = [file for file in (root / "usr/lib").rglob("*.so*") if file.is_file()]
    assert len(libraries) > 30
    for file in [*libraries, root / "usr/bin/tensord"]:
        text = file.read_bytes()
        assert listed[f"./{file.relative_to(root)}"]["SHA256"] == hashlib.sha256(text).hexdigest()
    names = {each["SPDXID"] for each in (*document["packages"], *document["files"])}
    related = {each["relatedSpdxElement"] for each in document["relationships"]}
    assert related == names and len(names) == len(document["packages"]) + len(document["files"])

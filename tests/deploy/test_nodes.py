"""A node without Kubernetes: the systemd unit, and compose."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from places import DEPLOY, program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root file system with the unit installed, and what systemd itself has."""
    programs = Path(program("tensord")).parent
    subprocess.run([DEPLOY / "systemd/install", tmp_path, "--programs", programs], check=True)
    shutil.copytree(
        "/lib/systemd/system",
        tmp_path / "usr/lib/systemd/system",
        symlinks=True,
        dirs_exist_ok=True,
    )
    (tmp_path / "lib").symlink_to("usr/lib")
    (tmp_path / "bin").symlink_to("usr/bin")
    shutil.copy("/bin/kill", tmp_path / "usr/bin/kill")
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (tmp_path / "etc/group").write_text("root:x:0:\n")
    subprocess.run(["systemd-sysusers", f"--root={tmp_path}", "tensord.conf"], check=True)
    return tmp_path


def analyze(root: Path, *arguments: str, unit: str = "tensord.service") -> str:
    done = subprocess.run(
        ["systemd-analyze", f"--root={root}", *arguments, unit],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def exposure(root: Path) -> float:
    text = analyze(root, "security", "--offline=true", "--no-pager")
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", text)
    assert found is not None, text
    return float(found[1])


def test_systemd_finds_nothing_wrong_with_the_units(root: Path) -> None:
    for unit in ("tensord.service", "tensord.socket"):
        assert analyze(root, "verify", "--man=no", "--recursive-errors=no", unit=unit) == ""
    assert "tensord:x:" in (root / "etc/passwd").read_text()


def test_the_unit_is_exposed_as_little_as_its_readme_says(root: Path) -> None:
    said = re.findall(
        r"\b([0-9]\.[0-9])\b(?=\n?[ (]*(?:OK|with))", (DEPLOY / "systemd/README.md").read_text()
    )
    with_gpus = exposure(root)
    dropins = root / "etc/systemd/system/tensord.service.d"
    dropins.mkdir(parents=True)
    shutil.copy(DEPLOY / "systemd/cpu.conf", dropins)
    assert [with_gpus, exposure(root)] == [float(each) for each in said]


def test_the_unit_waits_for_the_drain() -> None:
    unit = (DEPLOY / "systemd/tensord.service").read_text()
    options = (DEPLOY / "systemd/tensord.toml").read_text()
    found = re.search(r"^drain-timeout-seconds = (\d+)", options, re.MULTILINE)
    limit = re.search(r"^TimeoutStopSec=(\d+)", unit, re.MULTILINE)
    assert found is not None and limit is not None
    assert int(limit[1]) > int(found[1]) + 5  # of what does not stop then


def checked(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program("tensord"), *flags, "--check-config"], capture_output=True, text=True
    )


def test_the_server_takes_the_options_of_a_node(tmp_path: Path) -> None:
    options = DEPLOY / "systemd/tensord.toml"
    done = checked(f"--config={options}")
    assert done.returncode == 0, done.stderr
    mistaken = tmp_path / "tensord.toml"
    mistaken.write_text(options.read_text().replace("plan-store =", "plan-stor ="))
    done = checked(f"--config={mistaken}")
    assert done.returncode == 2
    assert "plan-stor" in done.stderr and "plan-store" in done.stderr


def test_compose_names_files_that_exist_and_flags_that_the_server_takes() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert set(services) == {"tensord", "prometheus", "grafana"}
    for service in services.values():
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).is_dir(), source
    done = checked(*services["tensord"]["command"])
    assert done.returncode == 0, done.stderr
    gpu = yaml.safe_load((DEPLOY / "compose.gpu.yaml").read_text())["services"]
    assert set(gpu) <= set(services)


def test_prometheus_of_compose_scrapes_where_the_server_shows_metrics() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    shown = [flag for flag in services["tensord"]["command"] if "metrics-listen" in flag]
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["tensord:" + shown[0].rpartition(":")[2]]}]
    folder = DEPLOY / "grafana/provisioning"
    (source,) = yaml.safe_load((folder / "datasources/prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((folder / "dashboards/tensord.yaml").read_text())["providers"]
    assert f":{provider['options']['path']}:ro" in "".join(services["grafana"]["volumes"])

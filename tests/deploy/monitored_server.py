"""A server with all that it can be watched for, and a Prometheus that scrapes it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from places import DEPLOY, REPOSITORY, program
from redis_server import RedisServer
from waiting import eventually

SCRAPE_SECONDS = 1
MOST_CONNECTIONS = 64  # of one peer


class Panel(NamedTuple):
    """A panel of a dashboard, with its queries and their legends."""

    dashboard: str
    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def dashboards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in sorted((DEPLOY / "grafana").glob("*.json"))]


def panels() -> list[Panel]:
    return [
        Panel(
            dashboard["title"],
            panel["title"],
            panel["fieldConfig"]["defaults"]["unit"],
            tuple((target["expr"], target["legendFormat"]) for target in panel["targets"]),
        )
        for dashboard in dashboards()
        for panel in dashboard["panels"]
    ]


def expand(query: str, seconds: int) -> str:
    """The query as Grafana sends it with everything chosen."""
    return re.sub(
        r"\$(instance|device|tenant)", ".*", query.replace("$__rate_interval", f"{seconds}s")
    )


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Prometheus:
    """Debian's, which scrapes one server each second; runs in `with`."""

    def __init__(self, folder: Path, target: str) -> None:
        shutil.copy(DEPLOY / "prometheus/alerts.yml", folder)
        (folder / "prometheus.yml").write_text(
            f"global: {{scrape_interval: {SCRAPE_SECONDS}s, evaluation_interval: 1s}}\n"
            "rule_files: [alerts.yml]\n"
            "scrape_configs:\n"
            f"  - {{job_name: tensord, static_configs: [{{targets: ['{target}']}}]}}\n"
        )
        self._port = free_port()
        self._folder = folder

    def __enter__(self) -> Prometheus:
        command = ["prometheus", f"--config.file={self._folder}/prometheus.yml"]
        command += [f"--storage.tsdb.path={self._folder}/data", "--log.level=warn"]
        command += [f"--web.listen-address=127.0.0.1:{self._port}"]
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)
        assert eventually(self._is_ready), (self._folder / "prometheus.log").read_text()
        return self

    def __exit__(self, *unused: object) -> None:
        self._process.kill()
        self._process.wait()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5).close()
        except OSError:
            return False
        return True

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer; an error's text fails."""
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, query: str, time: float) -> list[Any]:
        result: list[Any] = self.get("query", query=query, time=str(time))["result"]
        return result

    def query_range(self, query: str, start: float, end: float) -> list[Any]:
        bounds = {"start": str(start), "end": str(end), "step": str(SCRAPE_SECONDS)}
        result: list[Any] = self.get("query_range", query=query, **bounds)["result"]
        return result


class MonitoredServer:
    """A server with TLS, tokens, a plan store and an exchange; runs in `with`.

    Programs reach it by `address`, a Unix socket.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._redis = RedisServer()
        self.address = f"unix:{folder}/socket"

    def __enter__(self) -> MonitoredServer:
        subprocess.run(
            [DEPLOY / "certificates", self._folder], check=True, stdout=subprocess.DEVNULL
        )
        self._redis.start()
        self._tenants = self._folder / "tenants.toml"
        self._tenants.write_text("[tenant.physics]\nweight = 2\ntensors = 1000\n")
        command = [program("tensord"), f"--listen={self.address}", "--listen=localhost:0"]
        command += [f"--tls-certificate={self._folder}/server.pem"]
        command += [f"--tls-key={self._folder}/server-key.pem", "--insecure"]
        command += [f"--max-connections-per-peer={MOST_CONNECTIONS}"]
        command += ["--metrics-listen=127.0.0.1:0", f"--tenants={self._tenants}"]
        command += [f"--plan-exchange={self._redis.address}"]
        command += ["--plan-exchange-interval-seconds=0.2"]  # time: nobody waits for it
        self._log = self._folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)
        assert eventually(lambda: "address=unix:" in self._log.read_text()), self._log.read_text()
        return self

    def __exit__(self, *unused: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._redis.stop()

    @property
    def metrics_address(self) -> str:
        found = re.search(r"listening address=(\S+) for=metrics", self._log.read_text())
        assert found is not None
        return found[1].replace("localhost", "127.0.0.1")

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as answer:
            text: bytes = answer.read()
            return text.decode()

    def change_a_file(self) -> None:
        """Has the server read its tenants again."""
        self._tenants.write_text(self._tenants.read_text() + "priority = 3\n")

    def fail_a_call(self) -> None:
        """Makes a call that is refused."""
        done = subprocess.run(
            [program("tensorctl"), f"--address={self.address}", "list", "sessions/none"],
            capture_output=True,
        )
        assert done.returncode == 1

    def refuse_a_connection(self) -> None:
        """Opens one more than a peer may have."""
        found = re.search(r"listening address=localhost:(\d+) version", self._log.read_text())
        assert found is not None
        with contextlib.ExitStack() as open_ones:
            for _ in range(MOST_CONNECTIONS + 1):
                connection = socket.create_connection(("localhost", int(found[1])))
                open_ones.enter_context(connection)
            counted = "tensord_connections_refused_total{"
            assert eventually(lambda: counted in self.metrics())

    def load(self, seconds: float, rate: float = 40) -> subprocess.Popen[bytes]:
        """Starts tensord-load with its example of a mix."""
        mix = REPOSITORY / "client/load/examples/mixed.toml"
        command = [program("tensord-load"), f"--mix={mix}", f"--rate={rate}"]
        command += [f"--seconds={seconds}", "--quiet", "--objective=errors<1%"]
        return subprocess.Popen(
            command,
            env=os.environ | {"TENSORD_ADDRESS": self.address},
            stdout=subprocess.DEVNULL,
        )

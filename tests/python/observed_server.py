"""A server that shows what it does over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from waiting import eventually


class Answer(NamedTuple):
    """What a GET was answered with."""

    status: int
    text: str


class Metrics(dict[str, float]):
    """Values by name with labels, as in `a_total{b="c"}`."""

    def sum(self, name: str, **labels: str) -> float:
        """The sum of all of that name that have these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            value
            for key, value in self.items()
            if key.partition("{")[0] == name and all(each in key for each in wanted)
        )


class ObservedServer:
    """Runs from construction to the end of the with block.

    With `ca`, the authority of its certificate, metrics are asked for with TLS.
    """

    def __init__(
        self, folder: Path, *flags: str, ca: Path | None = None, **variables: str
    ) -> None:
        self._tls = None if ca is None else ssl.create_default_context(cafile=ca)
        self.address = f"unix:{folder}/socket"
        self._log = folder / "log"
        command = [os.environ["TENSORD_SERVER"], f"--listen={self.address}"]
        command += ["--threads=1", "--metrics-listen=127.0.0.1:0"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--probe-listen=127.0.0.1:0", *flags],
                env=os.environ | variables,
                stderr=log,
            )

    def __enter__(self) -> ObservedServer:
        listens = re.compile(r"address\W+unix:")  # in text and in JSON
        assert eventually(lambda: bool(listens.search(self.log())) or not self.runs())
        assert self.runs(), self.log()
        return self

    def __exit__(self, *unused: object) -> None:
        self.process.kill()
        self.process.wait()

    def runs(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self._log.read_text()

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def url(self, purpose: str) -> str:
        """Where it listens for "metrics" or "probes"."""
        found = re.search(rf"listening address=(\S+) for={purpose}", self.log())
        assert found is not None, self.log()
        scheme = "https" if self._tls and purpose == "metrics" else "http"
        return f"{scheme}://{found[1]}"

    def get(self, path: str, purpose: str = "metrics", token: str = "") -> Answer:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.url(purpose) + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20, context=self._tls) as answer:
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode())

    def metrics(self) -> Metrics:
        values = Metrics()
        for line in self.get("/metrics").text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def status(self) -> dict[str, Any]:
        return json.loads(self.get("/status.json").text)

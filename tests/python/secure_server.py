"""What tests of TLS and tokens need: certificates, tokens, servers that ask for them."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tensord
from waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]


class Certificates(NamedTuple):
    """What deploy/certificates leaves in a folder."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    def of(self, name: str) -> dict[str, Path]:
        """Arguments of `connect` that show somebody's certificate."""
        certificate = self.folder / f"{name}.pem"
        return {"cert": certificate, "key": self.folder / f"{name}-key.pem"}

    def of_server(self) -> dict[str, str]:
        """Flags of a server that shows its certificate."""
        certificate, key = self.of("server").values()
        return {"tls_certificate": str(certificate), "tls_key": str(key)}


def make_certificates(folder: Path, *options: str) -> str:
    """Runs deploy/certificates and returns what it says."""
    made = subprocess.run(
        [REPOSITORY / "deploy/certificates", folder, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert made.returncode == 0, made.stdout
    return made.stdout


def new_token(tokens: Path, tenant: str, role: str = "user") -> str:
    """Adds a token to a server's file of them and returns its secret."""
    identifier, salt = secrets.token_hex(4), secrets.token_hex(16)
    secret = f"tensord_{identifier}_{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256((salt + secret).encode()).hexdigest()
    with tokens.open("a") as file:
        file.write(f"{identifier} {tenant} {role} never {salt} {digest}\n")
    return secret


@contextlib.contextmanager
def serve_tcp(host: str, **flags: Any) -> Iterator[str]:
    """Runs a private server and yields the TCP address that it listens on, too."""
    pattern = re.compile(rf"listening address=({re.escape(host)}:\d+)")
    with tensord.serve(listen=f"{host}:0", threads=1, **flags) as unix:
        log = Path(unix.removeprefix("unix:")).with_name("log")
        assert eventually(lambda: pattern.search(log.read_text()) is not None)
        yield pattern.findall(log.read_text())[0]

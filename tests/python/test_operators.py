"""Who is an operator: whoever is named, and where one machine alone is served, everybody."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callers import Running, running

import tensord
from secure_server import Certificates, make_certificates
from waiting import eventually


def addresses_of_this_machine() -> set[str]:
    """Those of IPv4 that it has by a route to elsewhere, if there is any."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            return set()
        return {str(probe.getsockname()[0])}


def port_of(server: Running) -> str:
    pattern = re.compile(r"listening address=(?:localhost|0\.0\.0\.0):(\d+)")
    assert eventually(lambda: pattern.search(server.log.read_text()) is not None)
    return pattern.findall(server.log.read_text())[0]


def is_operator(address: str, **credentials: Any) -> bool:
    with tensord.connect(address, **credentials) as session:
        assert float(session.einsum("i->", np.ones(3))) == 3
        try:
            session.stats()
        except tensord.PermissionDenied as denied:
            assert denied.reason == "OPERATORS_ONLY"
            return False
        return True


def test_beyond_loopback_operators_are_named(tmp_path: Path) -> None:
    make_certificates(tmp_path, "--client", "client", "--client", "chief")
    certificates = Certificates(tmp_path)
    asking = {"tls_client_ca": str(certificates.ca), **certificates.of_server()}
    tenants = tmp_path / "tenants.toml"
    tenants.write_text(
        "[operators]\ncertificates = ['chief']\n[tenant.a]\ncertificates = ['client']\n"
    )

    def operators(listen: str, **flags: str) -> tuple[set[str], str]:
        with running(listen=listen, **asking, **flags) as server:
            address = f"localhost:{port_of(server)}"
            who = {
                name
                for name in ("client", "chief")
                if is_operator(address, ca=certificates.ca, **certificates.of(name))
            }
            (line,) = (
                line for line in server.log.read_text().splitlines() if " operators who=" in line
            )
            return who, line

    everywhere = "0.0.0.0:0"
    for listen, flags, who, said in (
        ("localhost:0", {}, {"client", "chief"}, "every certificate of --tls-client-ca"),
        (everywhere, {}, set(), "who=nobody"),
        (everywhere, {"operators": "spiffe://tensord/chief,x"}, {"chief"}, "spiffe://tensord/chief"),
        ("localhost:0", {"operators": "chief"}, {"chief"}, 'who="certificate chief"'),
        (everywhere, {"tenants": str(tenants)}, {"chief"}, 'who="certificate chief"'),
    ):
        got, line = operators(listen, **flags)
        assert got == who and said in line, (listen, flags, line)


@pytest.mark.timing
def test_where_nobody_is_asked_who_comes_from_elsewhere_is_no_operator() -> None:
    addresses = addresses_of_this_machine()
    if not addresses:
        pytest.skip("this machine has no address but loopback's")
    with running(insecure=True, listen="0.0.0.0:0") as server:
        port = port_of(server)
        assert is_operator(f"127.0.0.1:{port}")
        for address in addresses:
            assert not is_operator(f"{address}:{port}")
        log = server.log.read_text()
        assert 'operators who="everybody on this machine" why="nobody is asked' in log
        assert 'open to_anybody="health checks"' in log

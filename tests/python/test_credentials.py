"""Clients and servers know each other by certificates and tokens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensord
from secure_server import (
    REPOSITORY,
    Certificates,
    make_certificates,
    new_token,
    serve_tcp,
)
from tensord import _credentials
from waiting import eventually

SECRET = "tensord_0123abcd_not-for-anybody-s-eyes"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "CA", "CERT", "KEY", "TOKEN", "TOKEN_FILE", "ADDRESS":
        monkeypatch.delenv(f"TENSORD_{name}", raising=False)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    make_certificates(folder)
    return Certificates(folder)


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Those of an authority that no server knows."""
    folder = tmp_path_factory.mktemp("foreign")
    make_certificates(folder)
    return Certificates(folder)


@pytest.fixture(scope="module")
def mutual(certificates: Certificates) -> Iterator[str]:
    """A server that asks clients for certificates."""
    ca = str(certificates.ca)
    with serve_tcp(
        "localhost", tls_client_ca=ca, **certificates.of_server()
    ) as address:
        yield address


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    """A server without TLS."""
    with serve_tcp("localhost") as address:
        yield address


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """The tokens that a server takes."""
    file = tmp_path / "tokens"
    file.touch()
    return file


def refusal(address: str, **arguments: Any) -> tensord.Error:
    """The error of `connect`."""
    with pytest.raises(tensord.Error) as failure:
        tensord.connect(address, **arguments)
    assert "\n" not in str(failure.value)
    return failure.value


def round_trip(address: str, **arguments: Any) -> None:
    """Makes calls of every kind: unary, streams of either way, and of both."""
    array = np.arange(300_000.0).reshape(300, 1000)
    with tensord.connect(address, **arguments) as session:
        tensor = session.upload(array)
        with session.pipeline() as pipeline:
            total = pipeline.reduce(tensor, "ij", "")
        assert float(total.result()) == array.sum()
        np.testing.assert_array_equal(tensor.numpy(), array)


async def awaited_round_trip(address: str, **arguments: Any) -> None:
    array = np.arange(300_000.0)
    async with tensord.aio.connect(address, **arguments) as session:
        tensor = await session.upload(array)
        np.testing.assert_array_equal(await tensor.numpy(), array)


def test_servers_and_clients_show_certificates(certificates, mutual):
    arguments = {"ca": certificates.ca, **certificates.of("client")}
    round_trip(mutual, **arguments)
    asyncio.run(awaited_round_trip(mutual, **arguments))


def test_the_environment_names_the_files(certificates, mutual, monkeypatch, tmp_path):
    client = certificates.of("client")
    for name, path in {"ca": certificates.ca, **client}.items():
        monkeypatch.setenv(f"TENSORD_{name.upper()}", str(path))
    round_trip(mutual)
    monkeypatch.setenv("TENSORD_CA", "/nowhere")
    assert str(refusal(mutual)).startswith("$TENSORD_CA is /nowhere: No such file")
    round_trip(mutual, ca=certificates.ca)
    # The key may be with the certificate.
    monkeypatch.delenv("TENSORD_KEY")
    both = tmp_path / "both.pem"
    both.write_text(client["cert"].read_text() + client["key"].read_text())
    round_trip(mutual, ca=certificates.ca, cert=str(both))


def test_unix_sockets_need_no_certificates(address, certificates):
    with tensord.connect(address, ca=certificates.ca, token=SECRET) as session:
        assert session.stats().session_count >= 1


def test_what_keeps_tls_from_coming_about_is_named(
    certificates, foreign, mutual, plain
):
    ca, client = certificates.ca, certificates.of("client")
    for address, arguments, cause in [
        (mutual, {}, "the server there speaks TLS; connect with ca="),
        (mutual, {"ca": foreign.ca, **client}, f"not accepted: .*authorities: {foreign.ca}"),
        (mutual, {"ca": True, **client}, "authorities: the system's"),
        (mutual, {"ca": ca}, "may want the client's cert and key"),
        (mutual, {"ca": ca, **foreign.of("client")}, "refuses the client's cert"),
        (mutual, {"ca": ca, **certificates.of("server")}, "refuses the client's"),
        (plain, {"ca": ca}, "the server there does not speak TLS"),
    ]:
        error = refusal(address, **arguments)
        assert isinstance(error, tensord.Unavailable)
        assert error.reason == "TLS_HANDSHAKE_FAILED", error
        assert error.message.startswith(f"cannot connect to {address}: ")
        with pytest.raises(tensord.Unavailable, match=cause):
            raise error


def test_certificates_are_for_names(certificates, tmp_path):
    with serve_tcp("127.0.0.2", **certificates.of_server()) as address:
        error = refusal(address, ca=certificates.ca)
        assert "not valid for '127.0.0.2'" in str(error)
    make_certificates(certificates.folder, "--host", "127.0.0.2")
    with serve_tcp("127.0.0.2", **certificates.of_server()) as address:
        round_trip(address, ca=certificates.ca)


def test_files_that_are_something_else_are_named(certificates, foreign, tmp_path):
    ca, client = certificates.ca, certificates.of("client")
    text, damaged, locked = (tmp_path / name for name in ("text", "damaged", "locked"))
    text.write_text("nothing")
    begin, end = ca.read_text().splitlines()[0], ca.read_text().splitlines()[-1]
    damaged.write_text(f"{begin}\nAAAA\n{end}\n")
    subprocess.run(
        ["openssl", "pkey", "-in", client["key"], "-aes256"]
        + ["-passout", "pass:secret", "-out", locked],
        check=True,
    )
    for arguments, cause in [
        ({"ca": tmp_path / "none"}, "ca is .*none: No such file"),
        ({"ca": tmp_path}, "ca is .*: Is a directory"),
        ({"ca": text}, "ca is .*text: it holds no CERTIFICATE in PEM"),
        ({"ca": damaged}, "ca is .*damaged: its PEM is damaged"),
        ({"ca": ca, "cert": client["cert"]}, "client.pem: it holds no PRIVATE KEY"),
        ({"ca": ca, "key": client["key"]}, "there is no cert"),
        ({**client, "key": foreign.of("client")["key"]}, "it is not the key of"),
        ({**client, "key": locked}, "locked: it is encrypted"),
        ({"token_file": tmp_path / "none"}, "token_file is .*none: No such file"),
    ]:
        error = refusal("localhost:1", **arguments)
        assert isinstance(error, tensord.InvalidArgument)
        assert error.reason == "CREDENTIALS_UNREADABLE", error
        with pytest.raises(tensord.InvalidArgument, match=cause):
            raise error


def test_every_call_says_who_asks(certificates, tokens):
    secret = new_token(tokens, "chemistry")
    flags = {"tokens": str(tokens), **certificates.of_server()}
    with serve_tcp("localhost", **flags) as address:
        arguments = {"ca": certificates.ca, "token": secret}
        round_trip(address, **arguments)
        asyncio.run(awaited_round_trip(address, **arguments))
        nobody = refusal(address, ca=certificates.ca)
        assert isinstance(nobody, tensord.Unauthenticated)
        assert isinstance(nobody, PermissionError)
        assert nobody.reason == "CREDENTIALS_MISSING"
        stranger = refusal(address, ca=certificates.ca, token=SECRET)
        assert isinstance(stranger, tensord.Unauthenticated)
        assert SECRET not in str(stranger)


def test_tensord_load_and_the_clients_it_kills_say_who_asks(
    certificates, tokens, tmp_path
):
    token = tmp_path / "token"
    token.write_text(new_token(tokens, "chemistry"))
    program = Path(os.environ["TENSORD_SERVER"]).with_name("tensord-load")
    report = tmp_path / "report.json"
    flags = {"tokens": str(tokens), **certificates.of_server()}
    with serve_tcp("localhost", **flags) as address:
        # time: how long it makes calls
        loaded = subprocess.run(
            [program, "--address", address, "--closed=1", "--seconds=1", "--quiet"]
            + ["--mix", REPOSITORY / "client/load/examples/mixed.toml"]
            + ["--faults=kill-upload=1", "--objective=errors<=0", "--json", report]
            + ["--ca", certificates.ca, "--token-file", token],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    assert loaded.returncode == 0, loaded.stdout
    faults = json.loads(report.read_text())["faults"]["kill_upload"]
    assert faults["begun"] > 0 and faults["refused"] == 0


def test_tokens_come_from_the_environment(tokens, tmp_path, monkeypatch):
    secret = new_token(tokens, "chemistry")
    with serve_tcp("localhost", tokens=str(tokens)) as address:
        file = tmp_path / "token"
        file.write_text(f"{secret}\n")
        monkeypatch.setenv("TENSORD_TOKEN_FILE", str(file))
        round_trip(address)
        monkeypatch.setenv("TENSORD_TOKEN", SECRET)
        assert isinstance(refusal(address), tensord.Unauthenticated)
        round_trip(address, token=secret)
        round_trip(address, token_file=file)


@pytest.mark.parametrize(
    "address", ["gpu7:8470", "192.0.2.1:8470", "[2001:db8::1]:8470", "127.0.0.1.org:1"]
)
def test_tokens_leave_the_machine_with_tls_only(address, tmp_path, monkeypatch):
    assert refusal(address, token=SECRET).reason == "TOKEN_WITHOUT_TLS"
    file = tmp_path / "token"
    file.write_text(SECRET)
    monkeypatch.setenv("TENSORD_TOKEN_FILE", str(file))
    error = refusal(address)
    assert error.reason == "TOKEN_WITHOUT_TLS"
    assert f"$TENSORD_TOKEN_FILE ({file}) would go to {address}" in str(error)
    assert SECRET not in str(error)
    with contextlib.suppress(tensord.Unavailable):
        tensord.connect("[::1]:1", timeout=5)


@pytest.mark.parametrize("token", ["", "two words", "line\n", "ключ", "nul\0"])
def test_malformed_tokens_are_refused_and_not_shown(token: str):
    error = refusal("localhost:1", token=token)
    assert error.reason == "TOKEN_MALFORMED"
    assert str(error) == "token is no token, wanted printable ASCII without spaces"


def test_nothing_shows_the_token():
    given = _credentials.Given(token=SECRET)
    assert SECRET not in repr(given)
    credentials = _credentials.resolve("localhost:1", given)
    assert credentials.metadata() == (("authorization", f"Bearer {SECRET}"),)
    assert SECRET not in repr(credentials) + repr(credentials.token)


def test_a_token_file_that_is_replaced_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_credentials, "_LOOK_SECONDS", 0.0)
    # As Kubernetes does it: by a link that is swapped.
    link = tmp_path / "token"
    for name, text in ("old", "first"), ("half", "a b"), ("new", "second"):
        (tmp_path / name).write_text(text)
    link.symlink_to("old")

    def swap(name: str) -> None:
        (tmp_path / "link").symlink_to(name)
        os.replace(tmp_path / "link", link)

    credentials = _credentials.resolve(
        "localhost:1", _credentials.Given(token_file=link)
    )
    assert credentials.metadata() == (("authorization", "Bearer first"),)
    swap("half")
    assert credentials.metadata() == (("authorization", "Bearer first"),)
    swap("new")
    assert credentials.metadata() == (("authorization", "Bearer second"),)
    link.unlink()
    assert credentials.metadata() == (("authorization", "Bearer second"),)


def test_a_token_file_is_looked_at_once_a_second(tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    credentials = _credentials.resolve(
        "localhost:1", _credentials.Given(token_file=file)
    )
    file.write_text("second")
    after = (("authorization", "Bearer second"),)
    assert eventually(lambda: credentials.metadata() == after)


def test_certificates_are_made_once_and_renewed_on_request(tmp_path):
    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    said = make_certificates(tmp_path, "--client", "alice")
    assert f"tensord --listen=0.0.0.0:8470 --tls-certificate={tmp_path}" in said
    made = contents()
    assert sorted(made) == sorted(
        f"{name}{end}.pem" for name in ("ca", "server", "alice") for end in ("", "-key")
    )
    for name in made:
        mode = stat.S_IMODE((tmp_path / name).stat().st_mode)
        assert mode == (0o600 if name.endswith("-key.pem") else 0o644)
    make_certificates(tmp_path)
    assert contents() == made
    make_certificates(tmp_path, "--renew")
    renewed = contents()
    changed = {name for name in made if made[name] != renewed[name]}
    assert changed == {"server.pem", "alice.pem"}
    make_certificates(tmp_path, "--host", "gpu7.example", "--host", "2001:db8::7")
    changed = {name for name in made if contents()[name] != renewed[name]}
    assert changed == {"server.pem"}
    for client in "server", "alice":
        subprocess.run(
            ["openssl", "verify", "-CAfile", tmp_path / "ca.pem"]
            + [tmp_path / f"{client}.pem"],
            check=True,
            stdout=subprocess.DEVNULL,
        )


@pytest.mark.parametrize(
    "options", [[], ["--host"], ["--host", "a,b"], ["--client", "ca"], ["--what"]]
)
def test_mistaken_calls_make_no_certificates(options: list[str], tmp_path: Path):
    folder = [] if not options else [tmp_path / "folder"]
    made = subprocess.run(
        [REPOSITORY / "deploy/certificates", *folder, *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert made.returncode == 2 and made.stderr.startswith("certificates: ")
    assert list(tmp_path.iterdir()) == []

"""Who asks: tenants see what is theirs, operators do what concerns all."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from callers import Caller, Running, refused, running

import tensord
from files import rewrite
from secure_server import Certificates, make_certificates
from tensord.v1 import (
    admin_pb2,
    compute_pb2,
    compute_pb2_grpc,
    tensor_pb2,
    tensor_pb2_grpc,
)
from waiting import eventually

CONTROL = Path(os.environ["TENSORD_SERVER"]).with_name("tensorctl")


def control(*arguments: str, status: int = 0) -> str:
    """Runs tensorctl and returns what it prints."""
    ran = subprocess.run([CONTROL, *arguments], capture_output=True, text=True)
    assert ran.returncode == status, ran.stderr
    return ran.stdout if status == 0 else ran.stderr


def new_token(tokens: Path, tenant: str, role: str = "user", *more: str) -> str:
    made = control("token", "new", f"--tenant={tenant}", f"--role={role}", f"--tokens={tokens}", *more)
    return made.splitlines()[-1]


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def test_tenants_do_not_see_each_other(tokens: Path) -> None:
    chemistry, biology = new_token(tokens, "chemistry"), new_token(tokens, "biology")
    with running(tokens=str(tokens)) as server:
        ours, theirs = Caller(server.unix, chemistry), Caller(server.unix, biology)
        session = ours.open()
        assert ours.describe(session).session.name == session
        unknown = f"sessions/{'0' * 32}"

        def message(session: str) -> str:
            with pytest.raises(grpc.RpcError) as failure:
                theirs.describe(session)
            assert failure.value.code() == grpc.StatusCode.NOT_FOUND
            return failure.value.details().replace(session, "?")

        assert message(session) == message(unknown)
        assert ours.describe(session).session.name == session


def test_nothing_is_copied_to_another_tenant(tokens: Path) -> None:
    chemistry, biology = new_token(tokens, "chemistry"), new_token(tokens, "biology")
    with running(tokens=str(tokens)) as server:
        with (
            tensord.connect(server.unix, token=chemistry) as ours,
            tensord.connect(server.unix, token=chemistry) as ours_too,
            tensord.connect(server.unix, token=biology) as theirs,
        ):
            tensor = ours.upload(np.arange(3.0))
            stub = tensor_pb2_grpc.TensorServiceStub(grpc.insecure_channel(server.unix))

            def copy(session: str) -> Any:
                request = tensor_pb2.CopyTensorRequest(source=tensor.full_name, session=session)
                metadata = [("authorization", f"Bearer {chemistry}")]
                return stub.CopyTensor(request, metadata=metadata, timeout=30)

            def session_of(session: tensord.Session) -> str:
                return session.upload(np.ones(1)).full_name.partition("/tensors/")[0]

            assert copy(session_of(ours_too)).tensor.name.startswith(session_of(ours_too))
            other = session_of(theirs)
            assert refused(lambda: copy(other)) == ("NOT_FOUND", "SESSION_NOT_FOUND")


def test_calls_without_a_good_token_are_refused(tokens: Path) -> None:
    good = new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        missing = Caller(server.unix)
        assert refused(missing.open) == ("UNAUTHENTICATED", "CREDENTIALS_MISSING")
        for token in ("x", good[:-1], good + "x", good.upper(), "a.b.c"):
            caller = Caller(server.unix, token)
            assert refused(caller.open) == ("UNAUTHENTICATED", "TOKEN_INVALID")
        assert Caller(server.unix, good).open()
        assert good.split("_", 2)[2] not in server.log.read_text()


def test_loopback_addresses_demand_tokens_too(tokens: Path) -> None:
    good = new_token(tokens, "chemistry")
    with running(tokens=str(tokens), listen="localhost:0") as server:
        assert refused(Caller(server.address()).open)[0] == "UNAUTHENTICATED"
        assert Caller(server.address(), good).open()


@pytest.mark.timing
def test_a_revoked_token_is_good_for_nothing_within_a_second(tokens: Path) -> None:
    revoked, kept = new_token(tokens, "chemistry"), new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        caller, other = Caller(server.unix, revoked), Caller(server.unix, kept)
        session = caller.open()
        control("token", "revoke", revoked.split("_")[1], f"--tokens={tokens}")
        begun = time.monotonic()

        def is_refused() -> bool:
            try:
                caller.describe(session)
            except grpc.RpcError as error:
                return error.code() == grpc.StatusCode.UNAUTHENTICATED
            return False

        assert eventually(is_refused)
        assert time.monotonic() - begun < 10  # 1 on a machine that has time
        # What the tenant has is still the tenant's.
        assert other.describe(session).session.name == session


@pytest.mark.timing
def test_a_revoked_token_ends_what_is_being_uploaded(tokens: Path) -> None:
    revoked = new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        stop = threading.Event()
        failures: list[tensord.Error] = []

        def upload() -> None:
            try:
                with tensord.connect(server.unix, token=revoked) as session:
                    while not stop.is_set():
                        session.upload(np.ones(1 << 20))
            except tensord.Error as error:
                failures.append(error)

        thread = threading.Thread(target=upload)
        thread.start()
        try:
            control("token", "revoke", revoked.split("_")[1], f"--tokens={tokens}")
            assert eventually(lambda: bool(failures))
        finally:
            stop.set()
            thread.join()
        assert isinstance(failures[0], tensord.Unauthenticated)


@pytest.mark.timing
def test_a_revoked_token_ends_streams_that_are_idle(tokens: Path) -> None:
    revoked, kept = new_token(tokens, "chemistry"), new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        hold = threading.Event()
        streams = {}
        for token in (revoked, kept):
            caller = Caller(server.unix, token)
            stub = compute_pb2_grpc.ComputeServiceStub(caller.channel)
            request = compute_pb2.ExecuteStreamRequest()
            request.reduce.session = caller.open()

            def requests(
                first: compute_pb2.ExecuteStreamRequest = request,
            ) -> Iterator[compute_pb2.ExecuteStreamRequest]:
                yield first
                hold.wait(30)

            streams[token] = stub.ExecuteStream(requests(), metadata=caller.metadata, timeout=30)
            assert next(streams[token]).error.code == 3
        control("token", "revoke", revoked.split("_")[1], f"--tokens={tokens}")
        begun = time.monotonic()
        with pytest.raises(grpc.RpcError) as failure:
            next(streams[revoked])
        assert time.monotonic() - begun < 10  # 1 on a machine that has time
        assert failure.value.code() is grpc.StatusCode.UNAUTHENTICATED
        hold.set()
        assert list(streams[kept]) == []


def test_who_is_refused_again_and_again_does_not_fill_the_log(tokens: Path) -> None:
    user = new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        caller = Caller(server.unix, user)
        for _ in range(30):
            assert refused(caller.clear)[1] == "OPERATORS_ONLY"
        lines = [line for line in server.log.read_text().splitlines() if " audit " in line]
        assert len(lines) == 10
        assert all("code=PERMISSION_DENIED" in line for line in lines)


def test_a_bad_token_file_keeps_the_server_from_starting(tokens: Path) -> None:
    good = new_token(tokens, "chemistry")
    line = tokens.read_text()
    tokens.write_text(line + "nonsense\n")
    with pytest.raises(tensord.Unavailable, match=r"tokens:2: 1 words, wanted id, tenant"):
        with running(tokens=str(tokens)):
            pass
    tokens.write_text(line)
    with running(tokens=str(tokens)) as server:
        caller = Caller(server.unix, good)
        assert caller.open()
        rewrite(tokens, line + "nonsense\n")
        assert eventually(lambda: "kept what=tokens" in server.log.read_text())
        assert caller.open()


def test_operators_alone_change_what_all_share(tokens: Path) -> None:
    user, operator = new_token(tokens, "chemistry"), new_token(tokens, "ops", "operator")
    with running(tokens=str(tokens)) as server:
        one, all_ = Caller(server.unix, user), Caller(server.unix, operator)
        assert refused(one.clear) == ("PERMISSION_DENIED", "OPERATORS_ONLY")
        stats = admin_pb2.GetServerStatsRequest()
        assert refused(lambda: one(one.admin.GetServerStats, stats))[0] == "PERMISSION_DENIED"
        info = admin_pb2.GetServerInfoRequest()
        assert one(one.admin.GetServerInfo, info).version
        all_.clear()
        assert all_(all_.admin.GetServerStats, stats).devices
        audit = [line for line in server.log.read_text().splitlines() if " audit " in line]
        by = f'who="token {operator.split("_")[1]}" tenant=ops peer=unix: rpc=ClearPlanCache'
        assert any(by in line and "code=OK" in line for line in audit)
        assert any("tenant=chemistry" in line and "PERMISSION_DENIED" in line for line in audit)


def test_an_address_for_operators_takes_what_is_theirs(tokens: Path) -> None:
    operator = new_token(tokens, "ops", "operator")
    with running(
        tokens=str(tokens), listen="localhost:0", admin_listen="localhost:0"
    ) as server:
        public = Caller(server.address(), operator)
        admin = Caller(server.address("listening_for_operators"), operator)
        assert refused(public.clear) == ("UNIMPLEMENTED", "ADMIN_ELSEWHERE")
        admin.clear()
        session = public.open()
        assert admin.describe(session).session.name == session
        reflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        listing = b"\x3a\x00"  # list_services: ""

        def reflects(caller: Caller) -> bool:
            call = caller.channel.stream_stream(reflection)
            asked = call(iter([listing]), metadata=caller.metadata, timeout=30)
            try:
                return b"tensord.v1" in next(asked)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.UNIMPLEMENTED
                return False

        assert not reflects(public)
        assert reflects(admin)


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """Signs JSON Web Tokens by openssl."""

    def __init__(self, folder: Path) -> None:
        self.key = folder / "jwt-key.pem"
        self.jwks = folder / "jwks.json"
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        modulus = subprocess.run(
            ["openssl", "rsa", "-in", self.key, "-noout", "-modulus"],
            check=True, capture_output=True, text=True,
        ).stdout.strip().partition("=")[2]
        key = {"kty": "RSA", "kid": "k", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}
        self.jwks.write_text(json.dumps({"keys": [key]}))

    def token(self, **claims: Any) -> str:
        claims = {"iss": "us", "aud": "tensord", "exp": time.time() + 600} | claims
        text = ".".join(
            encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "k"}, claims)
        )
        signature = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", self.key],
            input=text.encode(), check=True, capture_output=True,
        ).stdout
        return f"{text}.{encoded(signature)}"


def test_json_web_tokens_say_tenant_and_role(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    with running(
        jwt_keys=str(issuer.jwks), jwt_issuer="us", jwt_audience="tensord"
    ) as server:
        user = Caller(server.unix, issuer.token(tenant="chemistry", sub="alice"))
        session = user.open()
        assert refused(user.clear)[1] == "OPERATORS_ONLY"
        Caller(server.unix, issuer.token(tenant="ops", role="operator")).clear()
        other = Caller(server.unix, issuer.token(tenant="biology"))
        assert refused(lambda: other.describe(session))[1] == "SESSION_NOT_FOUND"
        for claims, reason in (
            ({"tenant": "a", "iss": "them"}, "TOKEN_INVALID"),
            ({"tenant": "a", "exp": time.time() - 600}, "TOKEN_EXPIRED"),
            ({}, "TOKEN_INVALID"),
        ):
            assert refused(Caller(server.unix, issuer.token(**claims)).open)[1] == reason


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("identity")
    make_certificates(folder)
    return Certificates(folder)


@pytest.mark.timing
def test_old_versions_of_tls_are_refused(certificates: Certificates) -> None:
    with running(listen="localhost:0", **certificates.of_server()) as server:
        port = int(server.address().partition(":")[2])
        context = ssl.create_default_context(cafile=str(certificates.ca))
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(("localhost", port)) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                assert secure.version() in ("TLSv1.2", "TLSv1.3")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        with socket.create_connection(("localhost", port)) as plain:
            with pytest.raises(OSError):
                context.wrap_socket(plain, server_hostname="localhost")


def test_several_addresses_speak_tls(certificates: Certificates) -> None:
    listen = ["localhost:0", "127.0.0.2:0"]
    with running(listen=listen, **certificates.of_server()) as server:
        with tensord.connect(server.address(), ca=certificates.ca) as session:
            assert float(session.einsum("i->", np.ones(3))) == 3


def test_beyond_loopback_strangers_are_not_let_in(certificates: Certificates) -> None:
    with pytest.raises(tensord.Unavailable, match="--tls-client-ca, --tokens or --jwt-keys"):
        with running(listen="0.0.0.0:0", **certificates.of_server()):
            pass


@pytest.mark.timing
def test_certificates_that_are_swapped_serve_new_connections(tmp_path: Path) -> None:
    # As Kubernetes does: a link to a folder that is another one from then on.
    make_certificates(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    make_certificates(tmp_path / "two", "--renew")
    link = tmp_path / "current"
    link.symlink_to("one")
    flags = {"tls_certificate": str(link / "server.pem"), "tls_key": str(link / "server-key.pem")}
    ca = tmp_path / "one/ca.pem"
    context = ssl.create_default_context(cafile=str(ca))

    def served() -> str:
        """The certificate that a new connection is shown."""
        port = int(address.partition(":")[2])
        with socket.create_connection(("localhost", port)) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as secure:
                return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True) or b"")

    def is_served(version: str) -> bool:
        return served() in (tmp_path / version / "server.pem").read_text()

    with running(listen="localhost:0", **flags) as server:
        address = server.address()
        assert is_served("one")
        with tensord.connect(address, ca=ca) as session:
            new = tmp_path / "new"
            new.symlink_to("two")
            new.replace(link)
            assert eventually(lambda: is_served("two"))
            # What is connected stays so.
            assert float(session.einsum("i->", np.ones(3))) == 3
            # What is not good is not taken.
            (tmp_path / "two/server-key.pem").write_text("nonsense")
            assert eventually(lambda: "kept what=certificates" in server.log.read_text())
            assert is_served("two")


def test_clients_need_a_certificate_unless_they_may_bring_a_token(
    certificates: Certificates, tokens: Path
) -> None:
    token = new_token(tokens, "chemistry")
    asking = {"tls_client_ca": str(certificates.ca), **certificates.of_server()}
    client = certificates.of("client")
    with running(listen="localhost:0", **asking) as server:
        with tensord.connect(server.address(), ca=certificates.ca, **client) as session:
            assert float(session.einsum("i->", np.ones(3))) == 3
        with pytest.raises(tensord.Error):
            tensord.connect(server.address(), ca=certificates.ca, timeout=5)
    with running(listen="localhost:0", tokens=str(tokens), **asking) as server:
        for credentials in ({"token": token}, client):
            tensord.connect(server.address(), ca=certificates.ca, **credentials).close()
        with pytest.raises(tensord.Unauthenticated):
            tensord.connect(server.address(), ca=certificates.ca)


@pytest.mark.timing
def test_an_authority_that_is_taken_out_takes_its_connections_along(
    certificates: Certificates, tmp_path: Path
) -> None:
    make_certificates(tmp_path / "other")
    other, bundle = Certificates(tmp_path / "other"), tmp_path / "authorities.pem"
    bundle.write_text(other.ca.read_text() + certificates.ca.read_text())
    flags = {"tls_client_ca": str(bundle), **certificates.of_server()}
    with running(listen="localhost:0", **flags) as server:

        def connect(by: Certificates) -> tensord.Session:
            return tensord.connect(
                server.address(), ca=certificates.ca, timeout=5, **by.of("client")
            )

        kept, gone = connect(certificates), connect(other)
        make_certificates(tmp_path / "more")
        rewrite(bundle, (tmp_path / "more/ca.pem").read_text() + bundle.read_text())
        assert eventually(lambda: "reloaded what=certificates" in server.log.read_text())
        assert gone.describe().tensor_count == 0
        rewrite(bundle, certificates.ca.read_text())
        assert eventually(lambda: "connections_ended" in server.log.read_text())

        def is_let_in(session: tensord.Session) -> bool:
            try:
                return session.describe().tensor_count == 0
            except (tensord.Unavailable, tensord.DeadlineExceeded):
                return False

        assert eventually(lambda: is_let_in(kept))
        assert not is_let_in(gone)
        assert server.log.read_text().count("connections_ended") == 1
        kept.close()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"tls_certificate": "/x"}, "--tls-certificate needs --tls-key"),
        ({"tls_key": "/x"}, "--tls-key needs --tls-certificate"),
        ({"tls_client_ca": "/x"}, "--tls-client-ca needs --tls-certificate"),
        ({"operators": "x"}, "--operators needs --tls-client-ca"),
        ({"jwt_keys": "/x"}, "--jwt-keys needs --jwt-issuer"),
        ({"jwt_issuer": "us"}, "--jwt-issuer needs --jwt-keys"),
        ({"tls_certificate": "/x", "tls_key": "/x"}, "/x: No such file"),
        ({"tokens": "/x"}, "/x: No such file"),
        ({"tokens": ""}, "--tokens: 1 required"),
        ({"listen": "0.0.0.0:0"}, "--tls-certificate and --tls-key"),
        ({"admin_listen": "0.0.0.0:0"}, "--admin-listen=0.0.0.0:0 would serve"),
        ({"socket_mode": "0999"}, "'0999' is no mode"),
    ],
)
def test_what_does_not_belong_together_is_refused(flags: dict[str, str], problem: str) -> None:
    with pytest.raises(tensord.Unavailable) as failure:
        with running(**flags):
            pass
    assert problem in str(failure.value)


def test_certificate_and_key_belong_together(certificates: Certificates) -> None:
    flags = certificates.of_server() | {"tls_key": str(certificates.of("client")["key"])}
    with pytest.raises(tensord.Unavailable, match="not the key of the certificate in"):
        with running(**flags):
            pass


def test_certificates_that_tls_would_not_take_are_refused_at_the_start(tmp_path: Path) -> None:
    certificate, key = tmp_path / "weak.pem", tmp_path / "weak-key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:1024", "-noenc", "-subj", "/CN=localhost",
         "-days", "1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    with pytest.raises(tensord.Unavailable, match="certificate 1 is not taken by TLS: ee key too"):
        with running(tls_certificate=str(certificate), tls_key=str(key)):
            pass


def test_tokens_are_made_listed_and_revoked(tokens: Path) -> None:
    secret = new_token(tokens, "chemistry", "user", "--expires=90d")
    identifier = secret.split("_")[1]
    assert stat.S_IMODE(tokens.stat().st_mode) == 0o600
    assert secret not in tokens.read_text()
    listed = json.loads(control("token", "list", f"--tokens={tokens}", "--json"))
    assert [(each["id"], each["tenant"], each["role"]) for each in listed] == [
        (identifier, "chemistry", "user")
    ]
    assert "chemistry" in control("token", "list", f"--tokens={tokens}")
    assert "no token" in control("token", "revoke", "00000000", f"--tokens={tokens}", status=1)
    control("token", "revoke", identifier, f"--tokens={tokens}")
    assert json.loads(control("token", "list", f"--tokens={tokens}", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--tenant=No", "--role=user"], "--tenant is 'No', wanted"),
        (["--tenant=a", "--role=root"], "root"),
        (["--tenant=a", "--role=user", "--expires=soon"], "--expires is 'soon', wanted e.g. 90d"),
        (["--tenant=a", "--role=user", "--expires=-1h"], "wanted e.g. 90d"),
    ],
)
def test_mistaken_tokens_are_not_made(arguments: list[str], problem: str, tokens: Path) -> None:
    ran = subprocess.run(
        [CONTROL, "token", "new", f"--tokens={tokens}", *arguments], capture_output=True, text=True
    )
    assert ran.returncode != 0
    assert problem in ran.stderr
    assert not tokens.exists()


def test_the_file_of_tenants_says_whose_certificates_are_whose(
    certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "tenants.toml"
    file.write_text('[tenant.chemistry]\ncertificates = ["client"]\nsessions = 1\npriority = 2\n')
    asking = {"tls_client_ca": str(certificates.ca), **certificates.of_server()}
    arguments: dict[str, Any] = {"ca": certificates.ca, **certificates.of("client")}
    with running(listen="localhost:0", tenants=str(file), **asking) as server:
        with pytest.raises(tensord.InvalidArgument, match="priority is 3, wanted 0 to 2"):
            tensord.connect(server.address(), priority=3, **arguments)
        with tensord.connect(server.address(), **arguments) as session:
            with pytest.raises(tensord.PermissionDenied, match="certificate client is a user"):
                session.stats()
            with pytest.raises(tensord.ResourceExhausted) as failure:
                tensord.connect(server.address(), **arguments)
            assert failure.value.reason == "TOO_MANY_SESSIONS_OF_TENANT"
            rewrite(file, '[tenant.chemistry]\noperators = ["client"]\nweight = 2\n')
            assert eventually(lambda: "reloaded what=tenants" in server.log.read_text())
            assert session.stats().devices
            rewrite(file, "[tenant.chemistry]\nweigth = 2\n")
            assert eventually(lambda: "kept what=tenants" in server.log.read_text())
            assert "did you mean 'weight'?" in server.log.read_text().replace("\\'", "'")
            assert session.stats().devices
            rewrite(file, '[tenant.chemistry]\ncertificates = ["other"]\n')

            def is_unknown() -> bool:
                try:
                    session.stats()
                except tensord.Unauthenticated as error:
                    return error.reason == "CERTIFICATE_UNKNOWN"
                return False

            assert eventually(is_unknown)
            rewrite(file, '[tenant.chemistry]\noperators = ["client"]\n')
            assert eventually(lambda: not is_unknown())


@pytest.mark.timing
def test_sighup_has_files_read_again(tokens: Path) -> None:
    new_token(tokens, "chemistry")
    with running(tokens=str(tokens)) as server:
        os.kill(process_of(server), signal.SIGHUP)
        assert eventually(lambda: "reloaded what=tokens" in server.log.read_text())


def process_of(server: Running) -> int:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"--listen={server.unix}".encode() in (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise AssertionError("the server is not there")

"""How a server proves who it is, and what it is told about the caller."""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import os
import re
import socket
import ssl
import time
from pathlib import Path
from typing import Union

from tensord._arguments import check_type
from tensord._tracing import current_trace
from tensord._transport import Options, Pem
from tensord.errors import InvalidArgument

PathLike = Union[str, "os.PathLike[str]"]
Metadata = tuple[tuple[str, str], ...]

# Channels to one address would share a connection otherwise.
_CHANNEL_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)
# A proxy would take what stays on this machine elsewhere.
_LOCAL_CHANNEL_OPTIONS = (*_CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0))

_SYSTEM = "system"
_BUNDLE = "ca-certificates.crt"
_TOKEN = re.compile(r"[!-~]+")
_LOOK_SECONDS = 1.0
_PROBE_SECONDS = 3.0


@dataclasses.dataclass(frozen=True)
class Given:
    """What `connect` was given, None where the environment is to say.

    Attributes:
        ca, cert, key, token, token_file: As `tensord.connect` describes them.
    """

    ca: PathLike | bool | None = None
    cert: PathLike | None = None
    key: PathLike | None = None
    token: str | None = dataclasses.field(default=None, repr=False)
    token_file: PathLike | None = None


@dataclasses.dataclass(frozen=True)
class _File:
    """A file, and how it came to be asked for, e.g. `ca` or `$TENSORD_CA`."""

    path: str
    origin: str

    def read(self, wanted: str) -> bytes:
        """Returns its contents.

        Raises:
            InvalidArgument: They cannot be read.
        """
        try:
            return Path(self.path).read_bytes()
        except OSError as error:
            raise self.error(f"{error.strerror}, wanted {wanted}") from None

    def read_pem(self, label: str, wanted: str) -> bytes:
        """The same of a PEM file that has something of this label."""
        contents = self.read(wanted)
        if not re.search(rb"-----BEGIN [A-Z0-9 ]*%b-----" % label.encode(), contents):
            raise self.error(f"it holds no {label} in PEM, wanted {wanted}")
        return contents

    def error(self, what: str) -> InvalidArgument:
        return InvalidArgument(
            f"{self.origin} is {self.path}: {what}", reason="CREDENTIALS_UNREADABLE"
        )


class Tls:
    """TLS as a client; its files are read once, when it is made."""

    def __init__(self, ca: _File | None, cert: _File | None, key: _File | None) -> None:
        """
        Args:
            ca: Authorities; None for the system's.
            cert, key: Certificate of the client, and its key; without `key` it is in
                `cert`, too.

        Raises:
            InvalidArgument: A file cannot be read or holds something else.
        """
        self.authorities = ca.path if ca else "the system's"
        self.has_certificate = cert is not None
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._context.set_alpn_protocols(["h2"])
        ca = ca or _system_authorities()
        roots = private_key = chain = None
        if ca:
            roots = ca.read_pem("CERTIFICATE", "the certificates of authorities")
            try:
                self._context.load_verify_locations(cafile=ca.path)
            except ssl.SSLError as error:
                raise ca.error(f"its PEM is damaged ({error.reason})") from None
        else:
            self._context.load_default_certs()
        if cert:
            key = key or cert
            chain = cert.read_pem("CERTIFICATE", "the certificate of the client")
            private_key = key.read_pem("PRIVATE KEY", "the key of the certificate")
            self._load_chain(cert, key)
        self.pem: Pem = (roots, private_key, chain)

    def _load_chain(self, cert: _File, key: _File) -> None:
        def refuse_password() -> str:
            raise key.error("it is encrypted, wanted a key without a password")

        try:
            self._context.load_cert_chain(cert.path, key.path, refuse_password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise key.error(f"it is not the key of {cert.path}") from None
            raise key.error(
                f"its PEM, or that of {cert.path}, is damaged ({error.reason})"
            ) from None

    def complaint(self, host: str, port: int, name: str) -> str:
        """Returns why no connection comes about, as a handshake shows it; or ""."""
        try:
            with _handshake(self._context, host, port, name) as stream:
                # With TLS 1.3, certificates are refused after the handshake.
                if stream.recv(1):
                    return ""
        except ssl.SSLCertVerificationError as error:
            what = error.verify_message.rstrip(".")
            return (
                f"the server's certificate is not accepted: {what} (authorities: "
                f"{self.authorities})"
            )
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError, ConnectionResetError):
            pass
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            if "ALERT" not in reason:
                return f"the server there does not speak TLS ({reason})"
        except OSError:
            return ""  # There is none, or it says nothing.
        if self.has_certificate:
            return "the server closes the connection: it refuses the client's cert"
        return "the server closes the connection: it may want the client's cert and key"


class Token:
    """A bearer token, of which nothing is ever shown.

    That of a file is read again when the file has changed. Safe for use by many threads.
    """

    def __init__(
        self, origin: str, secret: str | None = None, file: _File | None = None
    ) -> None:
        """
        Args:
            origin: How it was given, for messages.
            secret: The token; None where a file holds it.
            file: Where it comes from.

        Raises:
            InvalidArgument: It is malformed, or the file cannot be read.
        """
        self.origin = origin
        self._file = file
        self._seen = self._signature()
        self._looked = time.monotonic()
        self._metadata = self._metadata_of(secret)

    def metadata(self) -> Metadata:
        """Returns what each call is sent with."""
        if self._file and time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            seen = self._signature()
            if seen not in (None, self._seen):
                try:
                    self._metadata = self._metadata_of(None)
                    self._seen = seen
                except InvalidArgument:
                    pass  # It is being written; until then the old one holds.
        return self._metadata

    def _metadata_of(self, secret: str | None) -> Metadata:
        if self._file:
            contents = self._file.read("a file with a token")
            secret = contents.decode("latin-1").strip()
        if not _TOKEN.fullmatch(secret or ""):
            raise InvalidArgument(
                f"{self.origin} is no token, wanted printable ASCII without spaces",
                reason="TOKEN_MALFORMED",
            )
        return (("authorization", f"Bearer {secret}"),)

    def _signature(self) -> tuple[int, ...] | None:
        try:
            stat = os.stat(self._file.path) if self._file else None
        except OSError:
            return None
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat else None


@dataclasses.dataclass(frozen=True)
class Credentials:
    """What channels and calls to a server need.

    Attributes:
        tls: None for plaintext.
        token: What each call brings along, if any.
        name: Whom the server's certificate is to name, where not the address's host.
    """

    tls: Tls | None = None
    token: Token | None = None
    name: str = ""

    def metadata(self) -> Metadata | None:
        """Returns what a call that is made now is sent with."""
        token = self.token.metadata() if self.token else ()
        return token + current_trace() or None

    def options(self, address: str) -> Options:
        """Returns what channels to an address are made with."""
        options: Options
        options = _LOCAL_CHANNEL_OPTIONS if is_local(address) else _CHANNEL_OPTIONS
        if self.name:
            names = "grpc.ssl_target_name_override", "grpc.default_authority"
            options += tuple((option, self.name) for option in names)
        return options

    @property
    def pem(self) -> Pem | None:
        """What TLS needs; None for plaintext."""
        return self.tls.pem if self.tls else None

    def complaint(self, address: str) -> str:
        """Returns why no server answers at an address if TLS is the cause, or ""."""
        if _is_unix(address):
            return ""
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        if self.tls:
            return self.tls.complaint(host, int(port), self.name or host)
        if _speaks_tls(host, int(port)):
            return "the server there speaks TLS; connect with ca=, or set $TENSORD_CA"
        return ""


def resolve(address: str, given: Given) -> Credentials:
    """Returns what a connection needs.

    Args:
        address: Where the server is; a Unix socket has no TLS.
        given: Arguments; what they leave open, the environment says.

    Raises:
        InvalidArgument: A file cannot be read or holds something else, there is a key
            without a certificate, or a token would leave this machine as plaintext.
    """
    tls = None if _is_unix(address) else _resolve_tls(given)
    token = _resolve_token(given)
    if token and not tls and not is_local(address):
        raise InvalidArgument(
            f"{token.origin} would go to {address} without TLS, for all to read; "
            "wanted ca= or $TENSORD_CA, the authority of the server's certificate",
            reason="TOKEN_WITHOUT_TLS",
        )
    return Credentials(tls, token)


def _resolve_tls(given: Given) -> Tls | None:
    ca = given.ca
    if isinstance(ca, bool):
        if not ca:
            raise TypeError("ca is False, wanted a file, True for the system's or None")
        ca = _SYSTEM
    authorities = _file("ca", ca)
    cert, key = _file("cert", given.cert), _file("key", given.key)
    if key and not cert:
        raise key.error("there is no cert that it is the key of")
    if not authorities and not cert:
        return None
    if authorities and authorities.path == _SYSTEM:
        authorities = None
    return Tls(authorities, cert, key)


def _resolve_token(given: Given) -> Token | None:
    if given.token is not None:
        check_type("token", given.token, str, "a string")
        return Token("token", given.token)
    if given.token_file is None and (secret := os.environ.get("TENSORD_TOKEN")):
        return Token("$TENSORD_TOKEN", secret)
    file = _file("token_file", given.token_file)
    return Token(f"{file.origin} ({file.path})", file=file) if file else None


def _file(argument: str, given: PathLike | None) -> _File | None:
    """The file that an argument names, or else the environment."""
    if given is not None:
        check_type(argument, given, (str, os.PathLike), "a file's path")
        return _File(os.fspath(given), argument)
    variable = f"TENSORD_{argument.upper()}"
    path = os.environ.get(variable)
    return _File(path, f"${variable}") if path else None


def _system_authorities() -> _File | None:
    """Where the system has them in one file; None: gRPC brings some."""
    paths = ssl.get_default_verify_paths()
    bundle = os.path.join(paths.capath or paths.openssl_capath, _BUNDLE)
    for path in paths.cafile, bundle:
        if path and os.path.isfile(path):
            return _File(path, "the system's ca")
    return None


@functools.lru_cache(maxsize=128)
def is_local(address: str) -> bool:
    """Whether what is sent to an address stays on this machine."""
    if _is_unix(address):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_unix(address: str) -> bool:
    return address.startswith("unix:")


def _handshake(
    context: ssl.SSLContext, host: str, port: int, name: str
) -> ssl.SSLSocket:
    connection = socket.create_connection((host, port), _PROBE_SECONDS)
    try:
        return context.wrap_socket(connection, server_hostname=name)
    except BaseException:
        connection.close()
        raise


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        _handshake(context, host, port, host).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True

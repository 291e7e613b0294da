"""The way to a session."""

from __future__ import annotations

import datetime
import os

from tensord._arguments import check_type
from tensord._blocking_link import BlockingLink
from tensord._credentials import Given
from tensord._deferred import DeferredSession
from tensord._deferred_link import DeferredLink
from tensord._session import Session
from tensord._session_link import open_session
from tensord._shared_memory import transport_of


def connect(
    address: str | None = None,
    *,
    timeout: float | None = None,
    job: str = "",
    lease: float | datetime.timedelta | None = None,
    quota_bytes: int = 0,
    device: str = "",
    priority: int = 0,
    ca: str | os.PathLike[str] | bool | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    token: str | None = None,
    token_file: str | os.PathLike[str] | None = None,
    deferred: bool = False,
    recorded: bool = False,
    transport: str | None = None,
) -> Session:
    """Opens a session.

    >>> with tensord.connect("localhost:8470") as session:
    ...     a = session.upload(np.random.rand(500, 40, 60))

    Args:
        address: `host:port` or `unix:/path`; by default $TENSORD_ADDRESS, or else
            localhost:8470. `dns:///host:port`: the session is opened on the least
            loaded of the servers that the name has addresses of, and stays there.
        timeout: Default deadline of every call, in seconds; None for 60, `math.inf`
            for none.
        job: Who asks, for the server's logs and statistics.
        lease: Seconds that the session outlives this program, should it be killed;
            by default the server's choice. A thread renews it meanwhile.
        quota_bytes: Most device memory that the session may hold; 0 for the server's
            default.
        device: E.g. `cpu:0`; by default the server's first.
        priority: 0 to 9. Of the sessions of a job, or of this machine's without one,
            those of higher priority have the device first.
        ca: PEM file of the authorities that may have signed the server's certificate;
            True, or "system", for those of this machine. The connection has TLS if it
            or `cert` is given; by default $TENSORD_CA. Unix sockets have none.
        cert: PEM file of the client's certificate; by default $TENSORD_CERT.
        key: PEM file of its key; by default $TENSORD_KEY, or else it is in `cert`, too.
        token: Says who asks, with each call; by default $TENSORD_TOKEN. It never goes
            to another machine without TLS.
        token_file: File that holds the token instead, and may be replaced: it is looked
            at about once a second; by default $TENSORD_TOKEN_FILE.
        deferred: Makes a `DeferredSession`: operations return at once, and what they
            fail with is raised where a value is used.
        recorded: The same, but operations wait here until a value is wanted, `wait` is
            called, 64 of them wait (16 with the native core), or requests and results come
            to 32 MiB. Those of which nobody has the results any more are not computed by
            then, and equal ones once.
        transport: How large arrays get to the server and back. "shm": by memory that it
            shares with one on the same host. "grpc": over the connection. "auto": by
            memory where that is possible. By default $TENSORD_TRANSPORT, or else "auto".

    Raises:
        Unavailable: There is no server, it is shutting down, or TLS does not come about
            (`TLS_HANDSHAKE_FAILED`).
        Unauthenticated: The server does not know the token or wants one.
        ResourceExhausted: The server has as many sessions as it takes.
        InvalidArgument: It knows no such device, the lease is out of bounds, the
            address is malformed (`ADDRESS_MALFORMED`), `timeout` is not positive, a
            `transport` is unknown (`TRANSPORT_UNKNOWN`), a file is missing or something
            else (`CREDENTIALS_UNREADABLE`), or the token
            would leave this machine without TLS (`TOKEN_WITHOUT_TLS`).
        FailedPrecondition: No memory can be shared, but `transport` is "shm"; says which
            precondition fails.
    """
    given = Given(ca, cert, key, token, token_file)
    check_type("deferred", deferred, bool, "a bool")
    check_type("recorded", recorded, bool, "a bool")
    transport = transport_of(transport)
    opened = open_session(
        address, timeout, job, lease, quota_bytes, device, priority, given
    )
    session: Session
    if deferred or recorded:
        link = DeferredLink(*opened, transport, records=recorded)
        session = DeferredSession(link)
    else:
        session = Session(BlockingLink(*opened, transport))
    if transport == "shm":
        try:
            session.link.memory.check()
        except BaseException:
            session.close()
            raise
    return session

"""Several servers behind one name, `dns:///HOST:PORT`."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import random
import socket

from tensord._connection import Connection
from tensord._credentials import Given, resolve
from tensord.errors import Error, Unavailable
from tensord.v1 import admin_pb2

NAMED = "dns:///"
_ASK_SECONDS = 3.0
_MOST_AT_A_TIME = 32


def connections_to(address: str, timeout: float, given: Given) -> list[Connection]:
    """Returns connections to the servers of an address, the least loaded one first.

    Args:
        address: Of one server, or `dns:///HOST:PORT`, whose addresses are servers.
        timeout: Default deadline of their calls, in seconds.
        given: TLS, and the token; certificates are those of HOST.

    Raises:
        Unavailable: The name has no address.
    """
    if not address.startswith(NAMED):
        return [Connection(address, timeout, resolve(address, given))]
    host, _, port = address.removeprefix(NAMED).rpartition(":")
    host = host.strip("[]")
    connections = []
    for each in _addresses_of(host, int(port)):
        credentials = dataclasses.replace(resolve(each, given), name=host)
        connections.append(Connection(each, timeout, credentials))
    if len(connections) == 1:
        return connections
    with concurrent.futures.ThreadPoolExecutor(
        min(_MOST_AT_A_TIME, len(connections))
    ) as pool:
        loads = dict(zip(connections, pool.map(_load_of, connections)))
    return sorted(connections, key=lambda connection: loads[connection])


def _addresses_of(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(
            f"the name {host} has no address ({error.strerror or error})",
            reason="UNREACHABLE",
        ) from None
    hosts = dict.fromkeys(str(place[0]) for *_, place in found)
    return [f"[{each}]:{port}" if ":" in each else f"{each}:{port}" for each in hosts]


def _load_of(connection: Connection) -> tuple[float, float, float]:
    """Returns what orders servers: sessions and what waits, use of memory, chance.

    A server that does not answer comes last.
    """
    try:
        info: admin_pb2.GetServerInfoResponse = connection.call(
            connection.admin.GetServerInfo,
            admin_pb2.GetServerInfoRequest(),
            min(_ASK_SECONDS, connection.timeout),
        )
    except Error:
        return math.inf, 0, random.random()
    load = info.load
    return load.session_count + load.queued_operations, load.memory_share, random.random()

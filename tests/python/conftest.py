"""A server for the tests, and ways to talk to it.

The program is $TENSORD_SERVER, or else build/dev/bin/tensord of the checkout.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import hypothesis
import numpy as np
import pytest

import tensord
from faulty_server import FaultyServer
from redis_server import RedisServer
from tensord import TensorSpec
from tensord._connection import Stubs as Services
from tensord._transport import grpcio_channel
from tensord.v1 import compute_pb2_grpc, session_pb2_grpc, tensor_pb2_grpc

REPOSITORY = Path(__file__).resolve().parents[2]

hypothesis.settings.register_profile(
    "tests", deadline=None, database=None, derandomize=True, max_examples=150
)
hypothesis.settings.load_profile("tests")

os.environ.setdefault("TENSORD_SERVER", str(REPOSITORY / "build/dev/bin/tensord"))


# What makes no calls through a session here, has other programs make them, is made of calls
# that others test, or is about what the server does whoever calls it. All else runs again with
# --again, on the native core (tests/run); these, too, in tests/run --all.
ONCE = {
    "test_array.py",
    "test_array_edges.py",
    "test_array_scans.py",
    "test_chunks.py",
    "test_configuration.py",
    "test_contract.py",
    "test_documents.py",
    "test_examples.py",
    "test_load.py",
    "test_modules.py",
    "test_plan_keepers.py",
    "test_quimb.py",
    "test_shown_code.py",
    "test_stages.py",
    "test_stress.py",
    "test_subscripts.py",
    "test_sycamore.py",
    "test_tenants.py",
    "test_tensor_operations.py",
    "test_time_rules.py",
    "test_traces.py",
    "test_types.py",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--again",
        action="store_true",
        help="leave out what does not depend on what carries calls",
    )


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(__file__).parent
    if gone := [name for name in ONCE if not (folder / name).exists()]:
        raise pytest.UsageError(f"conftest.ONCE names {gone}, which are not there")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    is_once = collection_path.name in ONCE and config.getoption("--again")
    return True if is_once else None


class Stubs(NamedTuple):
    """The generated stubs on a channel of their own."""

    channel: grpc.Channel
    sessions: session_pb2_grpc.SessionServiceStub
    tensors: tensor_pb2_grpc.TensorServiceStub
    compute: compute_pb2_grpc.ComputeServiceStub


_raw_stubs: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def raw_stubs(session: tensord.Session) -> Any:
    """grpcio's stubs, with all that they can do, for the server of a session."""
    connection = session.link.connection
    if tensord.implementation == "grpcio":
        return connection
    if connection not in _raw_stubs:
        address, credentials = connection.address, connection.credentials
        options = credentials.options(address)
        channel = grpcio_channel(grpc, address, options, credentials.pem)
        _raw_stubs[connection] = Services(channel)
    return _raw_stubs[connection]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Address of a server that all tests share."""
    with tensord.serve(threads=2) as server_address:
        yield server_address


@pytest.fixture
def private_address() -> Iterator[str]:
    """Address of a server that no other test uses."""
    with tensord.serve(threads=1) as server_address:
        yield server_address


@pytest.fixture(scope="module")
def session(address: str) -> Iterator[tensord.Session]:
    """A session that the tests of one file share."""
    with tensord.connect(address, job="tests") as opened:
        yield opened


@pytest.fixture(params=["deferred", "recorded"])
def deferred(address: str, request) -> Iterator[tensord.DeferredSession]:
    """A session of one test that defers its operations; failures may be left."""
    opened = tensord.connect(address, **{request.param: True})
    assert isinstance(opened, tensord.DeferredSession)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def stubs(address: str) -> Iterator[Stubs]:
    """Stubs for the shared server."""
    with grpc.insecure_channel(address) as channel:
        yield Stubs(
            channel,
            session_pb2_grpc.SessionServiceStub(channel),
            tensor_pb2_grpc.TensorServiceStub(channel),
            compute_pb2_grpc.ComputeServiceStub(channel),
        )


@pytest.fixture
def faulty() -> Iterator[FaultyServer]:
    """A server in this process whose transfers go wrong as told."""
    with FaultyServer() as server:
        yield server


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(20240229)


@pytest.fixture
def a(rng: np.random.Generator) -> np.ndarray:
    """An operand of `plan`."""
    return rng.random((20, 30))


@pytest.fixture
def b(rng: np.random.Generator) -> np.ndarray:
    """An operand of `plan`."""
    return rng.random((30, 10))


@pytest.fixture
def plan(session: tensord.Session) -> Iterator[tensord.Plan]:
    """A plan of the product of two matrices."""
    like_a, like_b = TensorSpec((20, 30), "float64"), TensorSpec((30, 10), "float64")
    with session.plan.contract(like_a, "ik", like_b, "kj", "ij") as made:
        yield made


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A Redis that no other test uses."""
    with RedisServer() as server:
        yield server

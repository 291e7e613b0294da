"""What tenants may use of a server that they share."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from string import ascii_letters
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
)

import tensord
from conftest import raw_stubs
from files import rewrite
from secure_server import new_token
from tensord.errors import Quota
from tensord.v1 import compute_pb2, tensor_pb2
from waiting import eventually

MIB = 1 << 20


class House:
    """A server of two tenants, and their file."""

    def __init__(self, address: str, folder: Path, secrets: dict[str, str]) -> None:
        self.address = address
        self.folder = folder
        self.secrets = secrets

    @property
    def log(self) -> str:
        return Path(self.address.removeprefix("unix:")).with_name("log").read_text()

    def connect(self, tenant: str) -> tensord.Session:
        # In the server's own memory, of which every byte is known here.
        return tensord.connect(self.address, token=self.secrets[tenant], transport="grpc")

    def change(self, shares: str) -> None:
        """Gives the file of tenants other contents and waits until they hold."""
        count = self.log.count("reloaded what=tenants")
        rewrite(self.folder / "tenants", shares)
        assert eventually(lambda: self.log.count("reloaded what=tenants") > count)


@contextlib.contextmanager
def house(folder: Path, shares: str, **flags: Any) -> Iterator[House]:
    tokens, tenants = folder / "tokens", folder / "tenants"
    secrets = {tenant: new_token(tokens, tenant) for tenant in ("red", "blue")}
    tenants.write_text(shares)
    flags |= {"tokens": str(tokens), "tenants": str(tenants)}
    with tensord.serve(threads=1, **flags) as address:
        yield House(address, folder, secrets)


def exceeded(call: Callable[[], Any]) -> tensord.errors.ResourceExhausted:
    """What a call fails with for lack of a quota."""
    with pytest.raises(tensord.errors.ResourceExhausted) as failure:
        call()
    assert failure.value.reason == "TENANT_QUOTA_EXCEEDED"
    return failure.value


def test_each_of_many_tenants_has_its_share_from_the_start(tmp_path: Path) -> None:
    others = "".join(f"[tenant.t{i:03}]\ntensors = 1\n" for i in range(100))
    shares = f"[tenant.blue]\ntensors = 2\n{others}[tenant.red]\ntensors = 1\n"
    with house(tmp_path, shares) as server:
        for tenant, limit in (("blue", 2), ("red", 1)):
            with server.connect(tenant) as session:
                kept = [session.create(3, np.float64) for _ in range(limit)]
                assert exceeded(lambda: session.create(3, np.float64)).quota.limit == limit
                del kept


def test_a_tensor_is_shared_with_so_many_tenants(tmp_path: Path) -> None:
    with house(tmp_path, "[tenant.red]\n") as server, server.connect("red") as session:
        tensor = session.upload(np.ones(3))
        tensor.share(*(f"t{i}" for i in range(100)))
        with pytest.raises(tensord.errors.ResourceExhausted) as failure:
            tensor.share("one-more")
        assert failure.value.reason == "TOO_MANY_TENANTS_OF_SHARE"


def test_all_sessions_of_a_tenant_have_its_share_of_memory(tmp_path: Path) -> None:
    shares = "[tenant.red]\ndevice_bytes = '1MiB'\ntensors = 3\n"
    with house(tmp_path, shares) as server:
        with server.connect("red") as one, server.connect("red") as other:
            one.upload(np.ones(3 * MIB // 4, np.uint8), name="kept")
            error = exceeded(lambda: other.upload(np.ones(MIB // 2, np.uint8)))
            assert error.quota == Quota("device_bytes", MIB, 3 * MIB // 4)
            assert error.retry_after is None
            assert "device_bytes" in str(error) and str(MIB) in str(error)
            with server.connect("blue") as others:
                others.upload(np.ones(2 * MIB, np.uint8))
            one.delete(["kept"])
            held = other.upload(np.ones(MIB, np.uint8))
            # A lower limit refuses what is new, and takes nothing away.
            server.change("[tenant.red]\ndevice_bytes = 1000\n")
            np.testing.assert_array_equal(held.numpy(), np.ones(MIB))
            exceeded(lambda: one.upload(np.ones(1, np.uint8)))
            server.change("[tenant.red]\ntensors = 2\n")
            more = one.upload(np.ones(1))
            assert exceeded(lambda: one.upload(np.ones(1))).quota == Quota("tensors", 2, 2)
            del more


def test_what_is_reserved_is_left_for_its_tenant(tmp_path: Path) -> None:
    shares = "[tenant.red]\nreserved_bytes = '3MiB'\n"
    with house(tmp_path, shares, memory_limit_bytes=4 * MIB) as server:
        with server.connect("red") as red, server.connect("blue") as blue:
            with pytest.raises(tensord.errors.ResourceExhausted, match="reserved for other"):
                blue.upload(np.ones(2 * MIB, np.uint8))
            red.upload(np.ones(3 * MIB, np.uint8), name="kept")
            server.change("")
            red.delete(["kept"])
            blue.upload(np.ones(2 * MIB, np.uint8))


def test_reservations_beyond_the_memory_are_refused_with_the_file(tmp_path: Path) -> None:
    with house(tmp_path, "", memory_limit_bytes=4 * MIB) as server:
        rewrite(tmp_path / "tenants", "[tenant.red]\nreserved_bytes = '5MiB'\n")
        assert eventually(lambda: "tenant red has reserved_bytes of 5242880" in server.log)
        with server.connect("blue") as blue:
            blue.upload(np.ones(2 * MIB, np.uint8))


@pytest.mark.timing
def test_one_operation_at_a_time_leaves_none_out(tmp_path: Path) -> None:
    shares = "[tenant.red]\nrunning = 1\nqueued = 4\n"
    matrix = np.ones((64, 64))
    with house(tmp_path, shares) as server:
        failures: list[BaseException] = []

        def work() -> None:
            try:
                with server.connect("red") as session:
                    for _ in range(20):
                        product = session.einsum("ij,jk", matrix, matrix)
                        assert product.numpy()[0, 0] == 64
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


@pytest.mark.timing
def test_so_many_operations_of_a_tenant_wait_and_no_more(tmp_path: Path) -> None:
    shares = "[tenant.red]\nqueued = 2\n"
    matrix = np.ones((300, 300))
    with house(tmp_path, shares) as server, server.connect("red") as session:
        kept = session.upload(matrix)
        refused: list[tensord.Error] = []
        with pytest.raises(tensord.errors.ResourceExhausted), session.pipeline() as pipeline:
            pending = [pipeline.einsum("ij,jk", kept, kept) for _ in range(40)]
        for result in pending:
            try:
                result.result()
            except tensord.errors.ResourceExhausted as error:
                refused.append(error)
        assert 0 < len(refused) < 40
        for each in refused:
            assert each.reason == "TENANT_QUOTA_EXCEEDED"
            assert each.quota is not None and each.quota[:2] == ("queued", 2)
            assert each.retry_after is not None and 0 < each.retry_after <= 30
        session.einsum("ij,jk", kept, kept)


def google_rpc() -> tuple[type[Any], type[Any]]:
    """Status and RetryInfo, as googleapis declares them."""
    file = descriptor_pb2.FileDescriptorProto(
        name="as_googleapis.proto",
        package="as_googleapis",
        syntax="proto3",
        dependency=[any_pb2.DESCRIPTOR.name, duration_pb2.DESCRIPTOR.name],
    )
    of = descriptor_pb2.FieldDescriptorProto

    def declare(name: str, *fields: tuple[str, int, int, int, str]) -> None:
        message = file.message_type.add(name=name)
        for field, number, label, kind, type_name in fields:
            message.field.add(
                name=field, number=number, label=label, type=kind, type_name=type_name or None
            )

    one, many = of.LABEL_OPTIONAL, of.LABEL_REPEATED
    declare(
        "Status",
        ("code", 1, one, of.TYPE_INT32, ""),
        ("message", 2, one, of.TYPE_STRING, ""),
        ("details", 3, many, of.TYPE_MESSAGE, ".google.protobuf.Any"),
    )
    declare("RetryInfo", ("retry_delay", 1, one, of.TYPE_MESSAGE, ".google.protobuf.Duration"))
    pool = descriptor_pool.Default()
    pool.Add(file)
    made = [pool.FindMessageTypeByName(f"as_googleapis.{name}") for name in ("Status", "RetryInfo")]
    status, info = (message_factory.GetMessageClass(each) for each in made)
    return status, info


@pytest.mark.timing
def test_clients_of_any_kind_hear_when_to_retry(tmp_path: Path) -> None:
    status_class, info_class = google_rpc()
    with house(tmp_path, "[tenant.red]\nqueued = 1\n") as server:
        with server.connect("red") as session:
            kept = session.upload(np.ones((300, 300)))
            request = compute_pb2.ContractRequest(session=session.name)
            request.a.tensor, request.b.tensor = kept.full_name, kept.full_name
            request.a.modes[:], request.b.modes[:], request.d.modes[:] = [0, 1], [1, 2], [0, 2]
            connection = session.link.connection
            metadata = connection.credentials.metadata()
            contract = raw_stubs(session).compute.Contract
            calls = [contract.future(request, metadata=metadata) for _ in range(20)]
            refused = [each for each in calls if each.exception() is not None]
    assert refused
    for each in refused:
        trailers = dict(each.trailing_metadata())
        status = status_class.FromString(trailers["grpc-status-details-bin"])
        assert (status.code, status.message) == (each.code().value[0], each.details())
        [detail] = status.details
        assert detail.type_url == "type.googleapis.com/google.rpc.RetryInfo"
        delay = info_class.FromString(detail.value).retry_delay.ToTimedelta()
        assert 0 < delay.total_seconds() <= 30


def grid(rows: int) -> tuple[str, list[np.ndarray]]:
    """A square of tensors that share a label with each neighbour, and its einsum."""
    labels: dict[tuple[int, int, int, int], str] = {}
    factors = []
    for i in range(rows):
        for j in range(rows):
            edges = [(i - 1, j, i, j), (i, j - 1, i, j), (i, j, i + 1, j), (i, j, i, j + 1)]
            inside = [edge for edge in edges if min(edge) >= 0 and max(edge) < rows]
            factors.append(
                "".join(labels.setdefault(edge, ascii_letters[len(labels)]) for edge in inside)
            )
    return ",".join(factors) + "->", [np.ones((2,) * len(factor)) for factor in factors]


@pytest.mark.timing
def test_searches_take_from_what_a_tenant_has_a_minute(tmp_path: Path) -> None:
    shares = "[tenant.red]\nsearch_seconds = 1\n"
    subscripts, tensors = grid(5)
    flags = {"metrics_listen": "localhost:0"}
    with house(tmp_path, shares, **flags) as server, server.connect("red") as session:

        def search(seconds: float, seed: int) -> None:
            session.explain.einsum(subscripts, *tensors, optimize=seconds, seed=seed)

        error = exceeded(lambda: search(5, 0))
        assert error.quota == Quota("search_seconds", 1, 0)
        assert error.retry_after is None  # it would never do

        # Others have what they ask for; and what one has taken flows back.
        with server.connect("blue") as other:
            other.explain.einsum(subscripts, *tensors, optimize=5)
        used = 'tensord_tenant_quota_used{tenant="red",quota="search_seconds",device=""}'
        assert quotas_told(server)[used] == 0
        search(1, 0)
        assert 0 < quotas_told(server)[used] < 1


@pytest.mark.timing
def test_searches_that_wait_find_what_others_have_left(tmp_path: Path) -> None:
    # A ring whose tensors are linked across, too.
    count = 300
    factors = (f"A[x{i},x{(i + 1) % count},y{i % (count // 2)}]" for i in range(count))
    ring = "D[] := " + "*".join(factors)
    outcomes: list[str] = []
    with house(tmp_path, "[tenant.red]\nsearch_seconds = 1\n") as server:
        with server.connect("red") as session:
            cube = session.upload(np.ones((2, 2, 2)))

            def search(seed: int) -> None:
                try:
                    session.explain.run(ring, A=cube, optimize=0.3, seed=seed)
                    outcomes.append("")
                except tensord.errors.ResourceExhausted as error:
                    outcomes.append(error.reason)

            # All at once, when something is left; they are searched one by one. Where
            # processors are busy, a search uses less than it may.
            while set(outcomes) <= {""} and len(outcomes) < 160:
                seeds = range(len(outcomes), len(outcomes) + 16)
                threads = [threading.Thread(target=search, args=(seed,)) for seed in seeds]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
    assert set(outcomes) == {"", "TENANT_QUOTA_EXCEEDED"}
    assert outcomes.count("") >= 2


def quotas_told(server: House) -> dict[str, float]:
    """Values of the metrics of quotas, by name and labels."""
    pattern = re.compile(r"listening address=(\S+) for=metrics")
    assert eventually(lambda: pattern.search(server.log) is not None)
    url = f"http://{pattern.findall(server.log)[0]}/metrics"
    with urllib.request.urlopen(url) as response:
        lines = response.read().decode().splitlines()
    told = [line.rsplit(" ", 1) for line in lines if line.startswith("tensord_tenant_quota")]
    return {name: float(value) for name, value in told}


def test_metrics_tell_use_and_limit_of_each_quota(tmp_path: Path) -> None:
    shares = "[tenant.red]\ndevice_bytes = '1MiB'\ntensors = 3\n[tenant.blue]\n"
    with house(tmp_path, shares, metrics_listen="localhost:0") as server:
        with server.connect("red") as session:
            kept = session.upload(np.ones(1000, np.uint8))
            told = quotas_told(server)
            del kept
    bytes_of_red = '{tenant="red",quota="device_bytes",device="cpu:0"}'
    tensors_of_red = '{tenant="red",quota="tensors",device=""}'
    assert told == {
        f"tensord_tenant_quota_used{bytes_of_red}": 1024,
        f"tensord_tenant_quota_limit{bytes_of_red}": MIB,
        f"tensord_tenant_quota_used{tensors_of_red}": 1,
        f"tensord_tenant_quota_limit{tensors_of_red}": 3,
    }


def message_of(call: Callable[[], Any], error: type[tensord.Error]) -> str:
    with pytest.raises(error) as failure:
        call()
    return failure.value.message


def test_a_shared_tensor_is_read_by_those_it_is_shared_with(tmp_path: Path) -> None:
    with house(tmp_path, "") as server:
        red, blue = server.connect("red"), server.connect("blue")
        with red, blue:
            array = np.arange(12.0).reshape(3, 4)
            tensor = red.upload(array)
            share = tensor.share("green")
            unknown = f"shares/{'0' * 32}"
            # What is not shared with a tenant is to it as what is not there.
            texts = {
                message_of(lambda: blue.open_shared(name), tensord.NotFound).replace(name, "?")
                for name in (share, unknown)
            }
            assert len(texts) == 1
            assert tensor.share("blue") == share
            theirs = blue.open_shared(share)
            np.testing.assert_array_equal(theirs.numpy(), array)
            np.testing.assert_array_equal(theirs[1:, ::2].numpy(), array[1:, ::2])
            product = blue.einsum("ij,kj->ik", theirs, theirs)
            np.testing.assert_allclose(product.numpy(), array @ array.T)
            np.testing.assert_array_equal(theirs.copy().numpy(), array)
            # Nothing tells the name of the owner's session.
            assert theirs.viewed == share.partition("/")[2]
            assert red.name not in repr(theirs)


def test_what_is_shared_is_written_by_nobody(tmp_path: Path) -> None:
    with house(tmp_path, "") as server:
        red, blue = server.connect("red"), server.connect("blue")
        with red, blue:
            tensor = red.upload(np.arange(4.0))
            theirs = blue.open_shared(tensor.share("blue"))
            assert not theirs.is_writable
            for write in (
                lambda: blue.permute(np.ones(4), "i", "i", out=theirs),
                lambda: blue.permute(np.ones(2), "i", "i", out=theirs[::2]),
                lambda: theirs.write(np.ones(4)),
            ):
                with pytest.raises(tensord.PermissionDenied) as failure:
                    write()
                assert failure.value.reason == "TENSOR_READ_ONLY"
            for own in (tensor, tensor[::2]):
                with pytest.raises(tensord.FailedPrecondition) as busy:
                    red.permute(np.ones(own.shape), "i", "i", out=own)
                assert busy.value.reason == "TENSOR_SHARED"
            with pytest.raises(tensord.FailedPrecondition, match="unshare it"):
                tensor.write(np.ones(4))
            with pytest.raises(tensord.InvalidArgument) as constant:
                blue.program("i,i->", theirs, theirs, constants=[0])
            assert constant.value.reason == "TENSOR_NOT_OWN"
            np.testing.assert_array_equal(theirs.numpy(), np.arange(4.0))
            assert tensor.unshare() == ()
            tensor.write(np.ones(4))
            np.testing.assert_array_equal(tensor.numpy(), np.ones(4))


def test_what_cannot_be_shared_is_said(tmp_path: Path) -> None:
    with house(tmp_path, "") as server, server.connect("red") as red:
        tensor = red.upload(np.arange(4.0))
        for share, error, reason in (
            (lambda: tensor[::2].share("blue"), tensord.InvalidArgument, "TENSOR_IS_VIEW"),
            (lambda: tensor.share("no tenant"), tensord.InvalidArgument, "TENANT_MALFORMED"),
            (lambda: tensor.share(), tensord.InvalidArgument, "TENANT_MISSING"),
            (
                lambda: tensor.share(*(f"t{i}" for i in range(101))),
                tensord.InvalidArgument,
                "TOO_MANY_TENANTS",
            ),
            (
                lambda: red.create(4, "f8").share("blue"),
                tensord.FailedPrecondition,
                "TENSOR_NOT_READY",
            ),
            (lambda: red.open_shared("x"), tensord.NotFound, "SHARE_NOT_FOUND"),
        ):
            with pytest.raises(error) as failure:
                share()
            assert failure.value.reason == reason


def test_who_reads_slowly_does_not_keep_what_was_shared(tmp_path: Path) -> None:
    with house(tmp_path, "") as server:
        red, blue = server.connect("red"), server.connect("blue")
        with red, blue:
            tensor = red.upload(np.ones(1 << 22, np.uint8))
            theirs = blue.open_shared(tensor.share("blue"))
            request = tensor_pb2.DownloadTensorRequest(
                tensor=theirs.full_name, chunk_bytes=1 << 12
            )
            connection = blue.link.connection
            chunks = raw_stubs(blue).tensor.DownloadTensor(
                request, metadata=connection.credentials.metadata()
            )
            next(chunks)
            tensor.unshare()
            with pytest.raises(grpc.RpcError) as failure:
                for _ in chunks:
                    pass
            assert failure.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("end", ["unshare", "unshare all", "delete", "close"])
def test_what_was_opened_goes_with_the_right_to_read_it(tmp_path: Path, end: str) -> None:
    with house(tmp_path, "") as server:
        red, blue = server.connect("red"), server.connect("blue")
        with red, blue:
            tensor = red.upload(np.arange(4.0), name="x")
            share = tensor.share("blue", "green")
            theirs = blue.open_shared(share)
            part = theirs[1:]
            copy = theirs.copy()
            if end == "unshare":
                assert tensor.unshare("blue") == ("green",)
            elif end == "unshare all":
                assert tensor.unshare() == ()
            elif end == "delete":
                red.delete([tensor])
            else:
                red.close()
            for gone in (theirs, part):
                with pytest.raises(tensord.NotFound) as failure:
                    gone.numpy()
                assert failure.value.reason == "TENSOR_NOT_FOUND"
            with pytest.raises(tensord.NotFound) as failure:
                blue.open_shared(share)
            assert failure.value.reason == "SHARE_NOT_FOUND"
            np.testing.assert_array_equal(copy.numpy(), np.arange(4.0))


def test_memory_of_what_is_shared_is_the_owners_and_comes_back(tmp_path: Path) -> None:
    shares = "[tenant.red]\ndevice_bytes = '1MiB'\n[tenant.blue]\ndevice_bytes = 1000\n"
    with house(tmp_path, shares) as server:
        red, blue = server.connect("red"), server.connect("blue")
        with red, blue:
            tensor = red.upload(np.ones(MIB, np.uint8), name="x")
            theirs = blue.open_shared(tensor.share("blue"))
            assert blue.reduce(theirs, "i", "", op="max").item() == 1
            red.delete([tensor])
            # Though the other still holds what it had opened.
            red.upload(np.ones(MIB, np.uint8))
            del theirs


def test_tensorctl_shares(tmp_path: Path) -> None:
    control = Path(os.environ["TENSORD_SERVER"]).with_name("tensorctl")
    with house(tmp_path, "") as server:
        red, blue = server.connect("red"), server.connect("blue")

        def run(*arguments: str) -> str:
            ran = subprocess.run(
                [control, f"--address={server.address}", *arguments],
                env={**os.environ, "TENSORD_TOKEN": server.secrets["red"]},
                capture_output=True,
                text=True,
            )
            assert ran.returncode == 0, ran.stderr
            return ran.stdout

        with red, blue:
            tensor = red.upload(np.arange(4.0))
            told = json.loads(run("share", "--json", tensor.full_name, "blue", "green"))
            assert told["tenants"] == ["blue", "green"]
            theirs = blue.open_shared(told["share"])
            np.testing.assert_array_equal(theirs.numpy(), np.arange(4.0))
            assert run("unshare", tensor.full_name, "blue") == "green\n"
            with pytest.raises(tensord.NotFound):
                theirs.numpy()

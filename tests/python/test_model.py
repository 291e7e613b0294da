"""Random clients find on the server what a model of it in NumPy says.

The model is small: a session is a quota and tensors by name; a tensor is an array, or
nothing yet; a view is NumPy's view of it; memory counts as long as it has a name.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import grpc
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import tensord
from tensord.v1 import (
    compute_pb2,
    compute_pb2_grpc,
    session_pb2,
    session_pb2_grpc,
    tensor_pb2,
    tensor_pb2_grpc,
)
from waiting import eventually

QUOTAS = [3072, 16_384, 1 << 20]
DTYPES = ["int32", "float64"]
EXTENTS = st.sampled_from([3, 16])  # so that they often fit
SHAPES = st.lists(EXTENTS, min_size=2, max_size=2).map(tuple)
# Scratch memory of operations on tensors of these sizes, at most.
SCRATCH_BYTES = 1 << 13


def counted(array: np.ndarray) -> int:
    """Bytes of a tensor in its session's quota."""
    return -(-array.nbytes // 256) * 256


@dataclasses.dataclass(eq=False)
class Memory:
    """What a tensor and its views share."""

    array: np.ndarray
    is_ready: bool
    name_count: int = 0


@dataclasses.dataclass(eq=False)
class Client:
    """A session, and what the model says that it has."""

    session: tensord.Session
    quota: int
    tensors: list[Tensor] = dataclasses.field(default_factory=list)
    is_open: bool = True

    def used(self) -> int:
        memories = {id(t.memory): t.memory for t in self.tensors}
        return sum(counted(memory.array) for memory in memories.values())

    def has_room_for(self, bytes_: int) -> bool:
        return self.used() + bytes_ <= self.quota


@dataclasses.dataclass(eq=False)
class Tensor:
    """A name on the server, and the array that the model has for it."""

    client: Client
    remote: tensord.RemoteTensor
    memory: Memory
    array: np.ndarray  # a view of memory.array

    def __post_init__(self) -> None:
        self.client.tensors.append(self)

    @property
    def is_usable(self) -> bool:
        return self in self.client.tensors

    @property
    def is_part(self) -> bool:
        """It is a view that leaves elements out."""
        return self.array.size < self.memory.array.size

    @property
    def has_room_to_be_copied(self) -> bool:
        return self.client.has_room_for(counted(self.array) + SCRATCH_BYTES)


class Clients(RuleBasedStateMachine):
    """Clients of one server."""

    address = ""  # of the server
    names = itertools.count()

    clients = Bundle("clients")
    tensors = Bundle("tensors")

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[Client] = []
        self.left_count = 0
        self.channel = grpc.insecure_channel(self.address)

    def teardown(self) -> None:
        for client in self.opened:
            client.session.close()
        self.channel.close()

    # Sessions.

    @precondition(lambda self: sum(c.is_open for c in self.opened) < 3)
    @rule(target=clients, quota=st.sampled_from(QUOTAS))
    def open(self, quota: int) -> Client:
        session = tensord.connect(self.address, quota_bytes=quota, lease=60)
        client = Client(session, quota)
        self.opened.append(client)
        return client

    @rule(client=consumes(clients))
    def close(self, client: Client) -> None:
        client.session.close()
        client.is_open = False
        client.tensors.clear()

    @precondition(lambda self: self.left_count < 2)
    @rule(bytes_=st.integers(1, 4096))
    def leave_a_session_to_its_lease(self, bytes_: int) -> None:
        sessions = session_pb2_grpc.SessionServiceStub(self.channel)
        self.left_count += 1
        request = session_pb2.OpenSessionRequest()
        request.lease.FromSeconds(1)  # time: it is to end
        name = sessions.OpenSession(request).session.name
        tensors = tensor_pb2_grpc.TensorServiceStub(self.channel)
        request = tensor_pb2.CreateTensorRequest(
            session=name,
            element_type=tensor_pb2.ELEMENT_TYPE_INT8,
            layout=tensor_pb2.Layout(extents=[bytes_]),
        )
        try:
            tensors.CreateTensor(request)
        except grpc.RpcError as error:
            # On a machine that does much else it has run out already.
            assert error.code() is grpc.StatusCode.NOT_FOUND

    # Tensors.

    @rule(
        target=tensors,
        client=clients,
        shape=SHAPES,
        dtype=st.sampled_from(DTYPES),
        seed=st.integers(0, 99),
        is_ready=st.booleans(),
    )
    def make(self, client, shape, dtype, seed, is_ready):
        array = random_array(shape, dtype, seed)
        name = f"made-{next(self.names)}"

        def run() -> tensord.RemoteTensor:
            if is_ready:
                return client.session.upload(array, name=name)
            return client.session.create(shape, dtype, name=name)

        remote = self.allocates(client, array, run, scratch=0)
        if remote is None:
            return multiple()
        return Tensor(client, remote, Memory(array, is_ready), array)

    @rule(tensor=tensors, seed=st.integers(0, 99))
    def write(self, tensor: Tensor, seed: int) -> None:
        if not tensor.is_usable:
            return
        whole = random_array(tensor.array.shape, tensor.array.dtype, seed)
        # What is written to a view is uploaded beside it.
        if tensor.remote.is_view and not tensor.has_room_to_be_copied:
            return
        if tensor.is_part and not tensor.memory.is_ready:
            self.not_ready(lambda: tensor.remote.write(whole))
            return
        tensor.remote.write(whole)
        tensor.array[...] = whole
        tensor.memory.is_ready = True

    @rule(tensor=tensors)
    def read(self, tensor: Tensor) -> None:
        if not tensor.is_usable:
            with pytest.raises((tensord.NotFound, tensord.FailedPrecondition)):
                tensor.remote.numpy()
        elif not tensor.memory.is_ready:
            self.not_ready(tensor.remote.numpy)
        elif tensor.has_room_to_be_copied:
            np.testing.assert_array_equal(tensor.remote.numpy(), tensor.array)

    @rule(target=tensors, tensor=tensors, data=st.data())
    def view(self, tensor: Tensor, data: st.DataObject):
        if not tensor.is_usable:
            return multiple()
        key = tuple(
            data.draw(st.slices(extent).filter(lambda s, n=extent: len(range(n)[s])))
            for extent in tensor.array.shape
        )
        remote = tensor.remote[key]
        array = tensor.array[key]
        return Tensor(tensor.client, remote, tensor.memory, array)

    @rule(tensor=consumes(tensors))
    def delete(self, tensor: Tensor) -> None:
        if not tensor.is_usable:
            with pytest.raises((tensord.NotFound, tensord.FailedPrecondition)):
                tensor.remote.delete()
            return
        tensor.remote.delete()
        tensor.client.tensors.remove(tensor)

    # Operations.

    @rule(target=tensors, a=tensors, out=st.none() | tensors)
    def permute(self, a: Tensor, out: Tensor | None):
        return self.compute(
            [a],
            out,
            lambda: a.array.T.copy(),
            lambda **options: a.client.session.permute(
                a.remote, "ij", "ji", **options
            ),
        )

    @rule(
        target=tensors,
        a=tensors,
        b=tensors,
        out=st.none() | tensors,
        subscripts=st.sampled_from(["ik,jk->ij", "ij,ij->ji", "ik,kj->ij"]),
        by_contract=st.booleans(),
    )
    def multiply(self, a, b, out, subscripts, by_contract):
        ik, kj, ij = subscripts.replace("->", ",").split(",")

        def run(**options: Any) -> tensord.RemoteTensor:
            session = a.client.session
            if by_contract:
                return session.contract(a.remote, ik, b.remote, kj, ij, **options)
            return session.einsum(subscripts, a.remote, b.remote, **options)

        if a.array.dtype != b.array.dtype:
            return multiple()
        return self.compute(
            [a, b],
            out,
            lambda: product(subscripts, a.array, b.array, is_strict=by_contract),
            run,
        )

    @rule(a=tensors)
    def cancel(self, a: Tensor) -> None:
        """At once: done or not, nobody is to know."""
        if not a.is_usable:
            return
        name = f"cancelled-{next(self.names)}"
        if not a.client.has_room_for(counted(a.array)):
            return
        shape = a.array.shape[::-1]
        out = a.client.session.create(shape, a.array.dtype, name=name)
        request = compute_pb2.PermuteRequest(
            session=a.client.session.name,
            a=compute_pb2.Operand(tensor=a.remote.full_name, modes=[1, 2]),
            d=compute_pb2.Output(tensor=out.full_name, modes=[2, 1]),
        )
        stub = compute_pb2_grpc.ComputeServiceStub(self.channel)
        call = stub.Permute.future(request)
        call.cancel()
        out.delete()

    # What they have in common.

    def not_ready(self, run: Callable[[], object]) -> None:
        with pytest.raises(tensord.FailedPrecondition) as refused:
            run()
        assert refused.value.reason == "TENSOR_NOT_READY"

    def allocates(self, client, array, run, *, scratch=SCRATCH_BYTES):
        """Runs what makes a tensor like `array`; None if the quota refuses it."""
        try:
            remote = run()
        except tensord.ResourceExhausted:
            assert not client.has_room_for(counted(array) + scratch)
            return None
        assert client.has_room_for(counted(array))
        return remote

    def compute(self, inputs, out, expected, run):
        """Runs an operation in the session of the first input."""
        client = inputs[0].client
        used = inputs if out is None else [*inputs, out]
        if not all(t.is_usable and t.client is client for t in used):
            return self.refused((tensord.Error,), run, out)
        read = [*inputs, out] if out is not None and out.is_part else inputs
        is_ready = all(t.memory.is_ready for t in read)
        # Where more than one thing is wrong, any of them is told.
        wrong = (tensord.InvalidArgument,)
        if not is_ready:
            wrong += (tensord.FailedPrecondition,)
        try:
            result = expected()
        except ValueError:
            return self.refused(wrong, run, out)
        if out is not None:
            if out.array.shape != result.shape:
                return self.refused(wrong, run, out)
            # What overlaps, and which types convert, is for other tests.
            shares = any(t.memory is out.memory for t in inputs)
            if shares or out.array.dtype != result.dtype:
                return multiple()
        if not is_ready:
            return self.refused((tensord.FailedPrecondition,), run, out)
        if out is None:
            remote = self.allocates(
                client, result, lambda: run(name=f"made-{next(self.names)}")
            )
            if remote is None:
                return multiple()
            made = Tensor(client, remote, Memory(result, True), result)
            self.read(made)
            return made
        if not client.has_room_for(SCRATCH_BYTES):
            return multiple()
        run(out=out.remote)
        out.array[...] = result
        out.memory.is_ready = True
        return multiple()

    def refused(self, kinds, run, out):
        """Something is wrong with it, and nothing changes."""
        with pytest.raises(kinds):
            run(**({"name": "never"} if out is None else {"out": out.remote}))
        return multiple()

    # What is always so.

    @invariant()
    def names_and_bytes_agree(self) -> None:
        for client in self.opened:
            if not client.is_open:
                continue
            client.session.link.keeper.flush()
            # An operation that was cancelled may hold memory for a moment.
            assert eventually(
                lambda c=client: c.session.describe().memory_used_bytes == c.used()
            ), (client.session.describe(), client.used())
            listed = {tensor.full_name for tensor in client.session.list()}
            assert listed == {t.remote.full_name for t in client.tensors}


def product(
    subscripts: str, a: np.ndarray, b: np.ndarray, is_strict: bool
) -> np.ndarray:
    """NumPy's; `contract` is strict: an extent of 1 is no other extent."""
    labels = subscripts.partition("->")[0].replace(",", "")
    if is_strict and len({*zip(labels, a.shape + b.shape)}) > len({*labels}):
        raise ValueError("extents differ")
    return np.einsum(subscripts, a, b)


def random_array(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Small integers: sums of their products are exact in every dtype."""
    rng = np.random.default_rng(seed)
    return rng.integers(-8, 8, shape).astype(dtype)


@pytest.mark.timing
def test_random_clients_see_what_the_model_says(private_address: str) -> None:
    with tensord.connect(private_address) as observer:

        def used() -> int:
            return observer.stats().devices[0].memory_used_bytes

        before = used()
        Clients.address = private_address
        run_state_machine_as_test(
            Clients,
            settings=hypothesis.settings(max_examples=120, stateful_step_count=60),
        )
        assert eventually(lambda: observer.stats().session_count == 1)
        assert observer.stats().tensor_count == 0
        assert eventually(lambda: used() == before)

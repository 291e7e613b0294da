"""Errors say what is wrong, as exceptions that Python knows."""

from __future__ import annotations

import concurrent.futures
import fractions
import pickle
import threading

import grpc
import numpy as np
import pytest

import tensord
from faulty_server import FaultyServer
from tensord import errors
from tensord.v1 import compute_pb2, error_pb2

ONES = np.ones((4, 5))


class FakeRpcError(grpc.RpcError):
    """A failed call, as gRPC presents it."""

    def __init__(self, code: grpc.StatusCode, metadata=()) -> None:
        self._code, self._metadata = code, metadata

    def code(self):
        return self._code

    def details(self):
        return "what happened"

    def trailing_metadata(self):
        return self._metadata


@pytest.mark.parametrize(
    ("code", "cls", "builtin"),
    [
        ("CANCELLED", tensord.Cancelled, Exception),
        ("INVALID_ARGUMENT", tensord.InvalidArgument, ValueError),
        ("DEADLINE_EXCEEDED", tensord.DeadlineExceeded, TimeoutError),
        ("NOT_FOUND", tensord.NotFound, KeyError),
        ("ALREADY_EXISTS", tensord.AlreadyExists, Exception),
        ("PERMISSION_DENIED", tensord.PermissionDenied, PermissionError),
        ("RESOURCE_EXHAUSTED", tensord.ResourceExhausted, MemoryError),
        ("FAILED_PRECONDITION", tensord.FailedPrecondition, Exception),
        ("ABORTED", tensord.Aborted, Exception),
        ("OUT_OF_RANGE", tensord.OutOfRange, ValueError),
        ("UNIMPLEMENTED", tensord.Unimplemented, NotImplementedError),
        ("INTERNAL", tensord.Internal, Exception),
        ("UNAVAILABLE", tensord.Unavailable, ConnectionError),
        ("DATA_LOSS", tensord.DataLoss, Exception),
        ("UNAUTHENTICATED", tensord.Unauthenticated, PermissionError),
        ("UNKNOWN", tensord.Error, Exception),
    ],
)
def test_each_status_has_its_exception(code, cls, builtin):
    detail = error_pb2.ErrorDetail(
        reason="WHY", cutensor_status="INVALID_VALUE", request_id="job-7"
    )
    metadata = [("other", "x"), ("tensord-error-bin", detail.SerializeToString())]
    error = errors.from_rpc_error(FakeRpcError(grpc.StatusCode[code], metadata))
    assert type(error) is cls
    assert isinstance(error, builtin) and isinstance(error, tensord.Error)
    assert str(error) == "what happened"
    assert error.code == grpc.StatusCode[code]
    assert error.reason == "WHY" and error.cutensor_status == "INVALID_VALUE"
    assert error.request_id == "job-7"
    assert errors.from_error(errors.to_error(error)).request_id == "job-7"
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is cls
    assert str(copied) == "what happened" and copied.reason == "WHY"


@pytest.mark.parametrize(
    "reason", ["INDEX_OUT_OF_RANGE", "TOO_MANY_INDICES", "ELLIPSIS_REPEATED"]
)
def test_wrong_indices_are_index_errors(reason: str):
    detail = error_pb2.ErrorDetail(reason=reason)
    metadata = [("tensord-error-bin", detail.SerializeToString())]
    code = grpc.StatusCode.INVALID_ARGUMENT
    error = errors.from_rpc_error(FakeRpcError(code, metadata))
    for each in error, errors.from_error(errors.to_error(error)):
        assert type(each) is tensord.InvalidIndex and each.reason == reason
        assert isinstance(each, (IndexError, ValueError)) and each.code == code
        assert type(pickle.loads(pickle.dumps(each))) is tensord.InvalidIndex


def test_details_that_cannot_be_read_are_left_out():
    for metadata in None, [("tensord-error-bin", b"\xff\xff")]:
        error = errors.from_rpc_error(FakeRpcError(grpc.StatusCode.NOT_FOUND, metadata))
        assert type(error) is tensord.NotFound and error.reason == ""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
        ("CANCELLED", "CANCELLED"),
        ("UNAVAILABLE", "UNREACHABLE"),
    ],
)
def test_errors_of_the_transport_have_a_reason(code: str, reason: str):
    error = errors.from_rpc_error(FakeRpcError(grpc.StatusCode[code]))
    assert error.reason == reason


def test_extents_that_differ_are_both_named(session):
    with pytest.raises(ValueError) as failure:
        session.contract(ONES, "ik", ONES, "kj", "ij")
    assert failure.value.reason == "MODE_EXTENT_MISMATCH"
    assert failure.value.cutensor_status and failure.value.request_id
    assert "mode 'k' has extent 5 in a but 4 in b" in str(failure.value)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda s: s.permute(ONES, "i", "i"), "MODE_COUNT_MISMATCH"),
        (lambda s: s.permute(ONES, "ii", "i"), "MODE_REPEATED"),
        (lambda s: s.permute(ONES, "ij", "i"), "MODE_NOT_IN_OUTPUT"),
        (lambda s: s.contract(ONES, "ij", ONES, "ij", "k"), "MODE_EXTENT_UNKNOWN"),
        (
            lambda s: s.contract(
                ONES, "ij", ONES, "ij", "k", out=s.create(3, np.float64)
            ),
            "MODE_NOT_IN_INPUT",
        ),
        (
            lambda s: s.contract(ONES, "ij", ONES, "ij", "", op_a="exp"),
            "OPERATOR_NOT_LINEAR",
        ),
        (
            lambda s: s.permute(np.ones(2, np.int32), "i", "i", op_a="exp"),
            "OPERATOR_NEEDS_FLOAT",
        ),
    ],
)
def test_wrong_requests_are_invalid(session, call, reason: str):
    with pytest.raises(tensord.InvalidArgument) as failure:
        call(session)
    assert failure.value.reason == reason


@pytest.mark.parametrize(
    ("call", "reason", "words"),
    [
        (
            lambda s: s.permute(ONES, "ij", "ji", op_a="cube"),
            "OPERATOR_UNKNOWN",
            "sqrt",
        ),
        (lambda s: s.reduce(ONES, "ij", "i", op="sub"), "OPERATOR_UNKNOWN", "max"),
        (
            lambda s: s.permute(ONES, "ij", "ji", compute_type="float8"),
            "COMPUTE_TYPE_UNKNOWN",
            "3xtf32",
        ),
        (lambda s: s.upload(np.ones(2, np.uint16)), "ELEMENT_TYPE_UNKNOWN", "uint16"),
        (lambda s: s.upload(["a"]), "ELEMENT_TYPE_UNKNOWN", "float32"),
        (
            lambda s: s.permute(ONES, "ij", "ji", out=ONES),
            "OUTPUT_NOT_REMOTE",
            "ndarray",
        ),
        (
            lambda s: s.elementwise(ONES, "ij", ONES, None, "ij"),
            "MODES_MISSING",
            "modes_c",
        ),
        (lambda s: s.create(3, "float7"), "ELEMENT_TYPE_UNKNOWN", "dtype is 'float7'"),
        (
            lambda s: s.permute(ONES, "ij", "ji", dtype="f4,("),
            "ELEMENT_TYPE_UNKNOWN",
            "wanted one of float16",
        ),
        (lambda s: s.create((2, 2**63), "f4"), "EXTENT_OUT_OF_RANGE", "int64"),
        (lambda s: s.create(-1, "f4"), "NEGATIVE_EXTENT", "extent 0"),
    ],
)
def test_what_the_client_refuses(session, call, reason: str, words: str):
    with pytest.raises(tensord.InvalidArgument, match=words) as failure:
        call(session)
    assert failure.value.reason == reason


def test_unknown_options_are_type_errors(session):
    with pytest.raises(TypeError, match="'workspace' is unknown, wanted .*timeout"):
        session.permute(ONES, "ij", "ji", workspace=7)
    with pytest.raises(TypeError, match="'foo' is unknown"):
        session.explain.einsum("ij->ji", ONES, foo=1)


@pytest.mark.parametrize(
    "factor",
    [2**53 + 1, -(2**63) + 1, np.int64(2**53 + 1), np.array(2**60 + 1), 10**400],
)
def test_factors_that_would_be_rounded_are_refused(session, factor):
    with pytest.raises(tensord.InvalidArgument, match="alpha is .*exactly") as failure:
        session.permute(np.ones(2, np.int64), "i", "i", alpha=factor)
    assert failure.value.reason == "FACTOR_NOT_REPRESENTABLE"
    with pytest.raises(tensord.InvalidArgument, match="beta is"):
        session.contract(ONES, "ij", ONES, "ij", "", beta=factor)


@pytest.mark.parametrize("factor", [2**53, -(2**62), np.int64(2**53), np.array(4)])
def test_factors_that_doubles_hold_are_exact(session, factor):
    result = session.permute(np.ones(1, np.int64), "i", "i", alpha=factor)
    assert result.item() == int(factor)


@pytest.mark.parametrize("factor", ["1", b"1", None, [1], np.ones(2), object()])
def test_factors_are_numbers(session, factor):
    with pytest.raises(TypeError, match="alpha .*wanted a number"):
        session.permute(ONES, "ij", "ji", alpha=factor)
    with pytest.raises(TypeError, match="beta .*wanted a number"):
        session.reduce(ONES, "ij", "i", beta=factor)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.einsum(5), "subscripts is of type int, wanted a string"),
        (lambda s: s.einsum(ONES, "ij"), "labels of operand 0 are 'ij', wanted a list"),
        (lambda s: s.permute(ONES, [1.5, 2], [2, 1.5]), "modes_[ad] is .*of ints"),
        (lambda s: s.permute(ONES, [1, 2], [2, 1.0]), "modes_d is .*of ints"),
        (lambda s: s.permute(ONES, 5, "ij"), "modes_a is 5"),
        (lambda s: s.reduce(ONES, "ij", None), "modes_d is None"),
        (lambda s: s.permute(ONES, "ij", "ji", op_a=5), "op_a is of type int"),
        (lambda s: s.reduce(ONES, "ij", "i", op=None), "op is of type NoneType"),
        (lambda s: s.permute(ONES, "ij", "ji", name=5), "name is of type int"),
        (lambda s: s.permute(ONES, "ij", "ji", algorithm=5), "algorithm is of"),
        (lambda s: s.permute(ONES, "ij", "ji", deterministic="x"), "deterministic is"),
        (lambda s: s.permute(ONES, "ij", "ji", selection=1), "selection is of type"),
        (
            lambda s: s.permute(ONES, "ij", "ji", workspace_limit_bytes="x"),
            "workspace_limit_bytes is of type str",
        ),
        (lambda s: s.permute(ONES, "ij", "ji", timeout="x"), "timeout is of type str"),
        (lambda s: tensord.connect(5), "address is of type int"),
        (lambda s: s.create(3, 5), "dtype is 5, wanted one of float16"),
        (lambda s: s.permute(ONES, "ij", "ji", dtype=5), "dtype is 5, wanted"),
        (
            lambda s: s.permute(ONES, "ij", "ji", compute_type=3.5),
            "compute_type is 3.5, wanted one of float16",
        ),
        (lambda s: s.create(2.5, "f4"), "shape is 2.5, wanted an int or a seq"),
        (lambda s: s.create((2, 3.0), "f4"), r"shape is \(2, 3.0\), wanted"),
        (lambda s: s.create("23", "f4"), "shape is '23', wanted"),
        (lambda s: s.create(None, "f4"), "shape is None, wanted"),
        (
            lambda s: tensord.connect("localhost:1", lease="long"),
            "lease is of type str, wanted seconds, a timedelta or None",
        ),
    ],
)
def test_wrong_types_are_type_errors(session, call, words: str):
    with pytest.raises(TypeError, match=words):
        call(session)


@pytest.mark.parametrize("timeout", [0, 0.0, -1, float("nan"), -float("inf")])
def test_timeouts_are_positive(session, timeout: float):
    tensor = session.upload(ONES)
    for call in (
        lambda: session.upload(ONES, timeout=timeout),
        lambda: session.create(3, np.float64, timeout=timeout),
        lambda: session.permute(ONES, "ij", "ji", timeout=timeout),
        lambda: session.explain.permute(ONES, "ij", "ji", timeout=timeout),
        lambda: session.close(timeout=timeout),
        lambda: tensor.numpy(timeout=timeout),
        lambda: tensor.write(ONES, timeout=timeout),
        lambda: tensor.copy(timeout=timeout),
        lambda: tensor.delete(timeout=timeout),
        lambda: tensord.connect("localhost:1", timeout=timeout),
    ):
        with pytest.raises(tensord.InvalidArgument, match="timeout is") as failure:
            call()
        assert failure.value.reason == "TIMEOUT_NOT_POSITIVE"
    np.testing.assert_array_equal(tensor.numpy(), ONES)


@pytest.mark.parametrize(
    "timeout",
    [
        np.float32(20),
        fractions.Fraction(41, 2),
        np.int64(20),
        1e10,
        pytest.param(10**400, id="huge"),
    ],
)
def test_timeouts_may_be_any_numbers_of_seconds(address, timeout):
    with tensord.connect(address, timeout=timeout) as session:
        tensor = session.upload(ONES, timeout=timeout)
        np.testing.assert_array_equal(tensor.numpy(timeout), ONES)
        session.permute(tensor, "ij", "ji", timeout=timeout)
        session.close(timeout=timeout)


@pytest.mark.parametrize("timeout", [None, float("inf")])
def test_sessions_without_a_deadline_close(address, timeout: float | None):
    with tensord.connect(address, timeout=timeout) as session:
        assert session.upload(ONES).state == "ready"


def test_output_options_do_not_go_with_out(session):
    out = session.create((5, 4), np.float64)
    with pytest.raises(tensord.InvalidArgument, match="together with out"):
        session.permute(ONES, "ij", "ji", out=out, name="other")


def test_element_types_without_a_kernel_name_the_nearest(session):
    with pytest.raises(tensord.Unimplemented, match="float32") as failure:
        session.contract(ONES, "ij", ONES.astype(np.float32), "ij", "")
    assert failure.value.reason == "TYPES_NOT_SUPPORTED"


def test_unknown_names_are_not_found(session):
    for name in "nowhere", "sessions/none/tensors/nowhere":
        with pytest.raises(KeyError, match="nowhere") as failure:
            session.tensor(name)
        assert failure.value.reason


def test_deleted_tensors_are_not_found(session):
    tensor = session.upload(ONES)
    tensor.delete()
    for call in (
        tensor.numpy,
        tensor.delete,
        tensor.copy,
        lambda: tensor.state,
        lambda: tensor.write(ONES),
        lambda: session.permute(tensor, "ij", "ji"),
        lambda: session.permute(ONES, "ij", "ij", out=tensor),
    ):
        with pytest.raises(tensord.NotFound, match=tensor.name):
            call()


def test_names_are_taken_once(session):
    with session.upload(ONES, name="taken"):
        for call in (
            lambda: session.create((2,), np.int8, name="taken"),
            lambda: session.permute(ONES, "ij", "ji", name="taken"),
            lambda: session.upload(ONES).copy(name="taken"),
        ):
            with pytest.raises(tensord.AlreadyExists, match="taken"):
                call()


def test_names_have_an_alphabet(session):
    with pytest.raises(tensord.InvalidArgument):
        session.create((2,), np.int8, name="two words")


def test_tensors_without_contents_are_not_ready(session):
    empty = session.create((4, 5), np.float64)
    for call in (
        empty.numpy,
        empty.copy,
        lambda: session.permute(empty, "ij", "ji"),
    ):
        with pytest.raises(tensord.FailedPrecondition) as failure:
            call()
        assert failure.value.reason == "TENSOR_NOT_READY"


def test_outputs_must_not_overlap_inputs(session):
    square = session.upload(np.ones((4, 4)))
    for call in (
        lambda: session.permute(square, "ij", "ji", out=square),
        lambda: session.contract(square, "ik", square, "kj", "ij", out=square),
    ):
        with pytest.raises(tensord.InvalidArgument) as failure:
            call()
        assert failure.value.reason == "OUTPUT_OVERLAPS_INPUT"
    np.testing.assert_array_equal(square.numpy(), np.ones((4, 4)))


def test_quotas_hold(address):
    with tensord.connect(address, quota_bytes=1 << 20, transport="grpc") as small:
        kept = small.upload(np.zeros(100_000))
        for call in (
            lambda: small.create(1 << 20, np.float64),
            lambda: small.contract(kept, "i", kept, "j", "ij"),
            lambda: kept.copy(),
        ):
            with pytest.raises(MemoryError) as failure:
                call()
            assert isinstance(failure.value, tensord.ResourceExhausted)
            assert failure.value.reason
        kept.delete()
        small.upload(np.zeros(100_000))


@pytest.mark.timing
def test_short_deadlines_are_exceeded(session):
    large = session.upload(np.ones((1000, 1000)))
    slow = {"algorithm": "cpu.contract.reference"}
    with pytest.raises(TimeoutError, match=r"^Contract: .* s are predicted") as failure:
        session.contract(large, "ik", large, "kj", "ij", timeout=0.5, **slow)
    assert isinstance(failure.value, tensord.DeadlineExceeded)
    assert failure.value.reason == "DEADLINE_TOO_SHORT"
    with pytest.raises(  # admission meets the deadline first where the call arrives in time
        tensord.DeadlineExceeded, match=r"^(Download|Store)Tensor( took longer|: .* s are predicted)"
    ):
        large.numpy(timeout=1e-4)


@pytest.mark.timing
def test_default_deadline_is_the_sessions():
    with (
        FaultyServer() as server,
        tensord.connect(server.address, timeout=300) as session,
    ):
        session.create(3, float)
        assert 200 < server.seconds_left < 400
        session.create(3, float, timeout=1000)
        assert 900 < server.seconds_left < 1100


def test_other_sessions_tensors_are_not_found(session, address, stubs):
    with tensord.connect(address) as other:
        theirs, ours = other.upload(ONES), session.upload(ONES)
        with pytest.raises(tensord.NotFound) as failure:
            session.tensor(theirs.full_name)
        assert theirs.full_name in str(failure.value)
        assert failure.value.reason == "TENSOR_NOT_FOUND"
        # The client refuses operands of other sessions itself.
        for a, d in (theirs, ours), (ours, theirs):
            request = compute_pb2.PermuteRequest(
                session=session.name,
                a=compute_pb2.Operand(tensor=a.full_name, modes=[0, 1]),
                d=compute_pb2.Output(tensor=d.full_name, modes=[0, 1]),
            )
            with pytest.raises(grpc.RpcError) as refusal:
                stubs.compute.Permute(request)
            assert refusal.value.code() == grpc.StatusCode.NOT_FOUND
            assert theirs.full_name in refusal.value.details()
        np.testing.assert_array_equal(theirs.numpy(), ONES)


def test_closed_sessions_refuse_calls(address):
    with tensord.connect(address) as session:
        tensor = session.upload(ONES)
    for call in session.describe, tensor.numpy, lambda: session.upload(ONES):
        with pytest.raises(tensord.FailedPrecondition, match="is closed") as failure:
            call()
        assert failure.value.reason == "SESSION_CLOSED"
    session.close()


@pytest.mark.timing
def test_closing_ends_the_calls_of_other_threads(address):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        with tensord.connect(address) as session:
            started = threading.Barrier(9)

            def work() -> None:
                started.wait()
                while True:
                    session.upload(session.einsum("ij,jk", ONES, ONES.T).numpy())

            workers = [pool.submit(work) for _ in range(8)]
            started.wait()
        for worker in workers:
            assert isinstance(worker.exception(20), tensord.Error)


def test_unknown_devices_and_leases_are_refused(address):
    with pytest.raises(tensord.InvalidArgument, match="abacus:0"):
        tensord.connect(address, device="abacus:0")
    for lease in 7200, 1e9, 1e30, float("inf"), float("nan"), -1:
        with pytest.raises(tensord.InvalidArgument, match="lease is") as failure:
            tensord.connect(address, lease=lease)
        assert failure.value.reason == "LEASE_OUT_OF_RANGE"

"""Transfers arrive whole, whatever happens on the way."""

from __future__ import annotations


import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensord
from faulty_server import FaultyServer
from tensord import _dtypes as dtypes, _progress as progress

CHUNK_BYTES = 1 << 16
ARRAY = np.arange(5 * CHUNK_BYTES // 8, dtype=np.float64)
TEMPORARY = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DATA_LOSS]


@pytest.mark.parametrize("status", TEMPORARY)
def test_upload_goes_on_where_it_broke_off(faulty: FaultyServer, status):
    faulty.upload_faults = [(3, status), (1, status)]
    with tensord.connect(faulty.address) as session:
        tensor = session.upload(ARRAY)
        assert faulty.bytes_of(tensor.full_name) == ARRAY.tobytes()
    assert faulty.upload_offsets == [0, 3 * CHUNK_BYTES, 4 * CHUNK_BYTES]


def test_a_strided_part_moves_only_its_elements(address: str):
    array = np.arange(300 * 400.0).reshape(300, 400)
    with tensord.connect(address, transport="grpc") as session:
        tensor = session.upload(array)
        before = session.stats().downloaded_bytes
        for part, expected in (
            (tensor[..., ::2], array[..., ::2]),
            (tensor[10:200:3, ::-1].T, array[10:200:3, ::-1].T),
        ):
            np.testing.assert_array_equal(part.numpy(), expected)
            after = session.stats().downloaded_bytes
            assert after - before == expected.nbytes
            before = after


def test_overwriting_starts_over(faulty: FaultyServer):
    with tensord.connect(faulty.address) as session:
        tensor = session.create(ARRAY.shape, ARRAY.dtype)
        faulty.upload_faults = [(3, grpc.StatusCode.UNAVAILABLE)]
        tensor.write(ARRAY)
        faulty.upload_faults = [(3, grpc.StatusCode.UNAVAILABLE)]
        tensor.write(ARRAY + 1)
        assert faulty.bytes_of(tensor.full_name) == (ARRAY + 1).tobytes()
    assert faulty.upload_offsets == [0, 3 * CHUNK_BYTES, 0, 0]


@pytest.mark.timing
@pytest.mark.parametrize("name", [None, "named"])
def test_upload_that_never_gets_on_fails_and_leaves_nothing(faulty: FaultyServer, name):
    faulty.upload_faults = [(1, grpc.StatusCode.DATA_LOSS)] + [
        (0, grpc.StatusCode.DATA_LOSS)
    ] * 20
    with tensord.connect(faulty.address) as session:
        with pytest.raises(tensord.DataLoss, match="told to fail"):
            session.upload(ARRAY, name)
        session.link.keeper.flush()
        assert faulty.deleted == [f"sessions/only/tensors/{name or 0}"]
    assert len(faulty.upload_offsets) < 8


def test_upload_that_is_refused_is_not_repeated(faulty: FaultyServer):
    faulty.upload_faults = [(0, grpc.StatusCode.INVALID_ARGUMENT)]
    with tensord.connect(faulty.address) as session:
        with pytest.raises(tensord.InvalidArgument, match="told to fail"):
            session.upload(ARRAY)
    assert faulty.upload_offsets == [0]


@pytest.mark.parametrize(
    "fault", [*TEMPORARY, "flip", "skip", "repeat", "end"], ids=str
)
@pytest.mark.parametrize("sent", [0, 2, 4])
def test_download_goes_on_where_it_broke_off(faulty: FaultyServer, fault, sent: int):
    with tensord.connect(faulty.address) as session:
        tensor = session.upload(ARRAY)
        faulty.download_faults = [(sent, fault)]
        np.testing.assert_array_equal(tensor.numpy(), ARRAY)
    resumed_at = sent + 1 if fault == "repeat" else sent
    if resumed_at < 5:
        assert faulty.download_offsets == [0, resumed_at * CHUNK_BYTES]


def test_download_of_a_tensor_that_changed_starts_over(faulty: FaultyServer):
    with tensord.connect(faulty.address) as session:
        tensor = session.upload(ARRAY)
        faulty.download_faults = [(2, grpc.StatusCode.ABORTED)]
        np.testing.assert_array_equal(tensor.numpy(), ARRAY)
    assert faulty.download_offsets == [0, 0]


def test_download_that_stays_damaged_fails(faulty: FaultyServer):
    with tensord.connect(faulty.address) as session:
        tensor = session.upload(ARRAY)
        faulty.download_faults = [(0, "flip")] * 20
        with pytest.raises(tensord.DataLoss) as failure:
            tensor.numpy()
    assert failure.value.reason == "CHUNK_CORRUPT"
    assert len(faulty.download_offsets) < 8


@pytest.mark.timing
def test_retries_end_with_the_deadline(faulty: FaultyServer):
    with tensord.connect(faulty.address) as session:
        tensor = session.upload(ARRAY)
        faulty.download_faults = [(0, grpc.StatusCode.UNAVAILABLE)] * 20
        with pytest.raises((tensord.Unavailable, tensord.DeadlineExceeded)):
            tensor.numpy(timeout=0.3)
        with_deadline = len(faulty.download_offsets)
        with pytest.raises(tensord.Unavailable):
            tensor.numpy(timeout=60)
    # The pauses before the fourth and the fifth are longer than that.
    assert with_deadline <= 3
    assert len(faulty.download_offsets) - with_deadline == 5


@given(
    hnp.arrays(
        st.sampled_from(dtypes.DTYPES),
        hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=6),
        elements=st.nothing(),
        fill=st.just(0),
    ),
    st.data(),
)
def test_any_array_comes_back_as_it_was(session, blank: np.ndarray, data):
    raw = np.frombuffer(data.draw(st.binary(min_size=7, max_size=7)), np.uint8)
    bits = np.resize(raw, blank.nbytes)
    if blank.dtype == np.bool_:
        bits = bits & 1
    array = bits.view(blank.dtype).reshape(blank.shape)
    back = session.upload(array).numpy()
    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == array.tobytes()


@given(st.data())
def test_strides_do_not_matter(session, data):
    base = np.arange(4 * 6 * 8, dtype=np.int32).reshape(4, 6, 8)
    axes = data.draw(st.permutations(range(3)))
    slices = tuple(data.draw(st.slices(n)) for n in base.shape)
    view = base[slices].transpose(axes)
    if data.draw(st.booleans()):
        view = np.broadcast_to(view, (3, *view.shape))
    np.testing.assert_array_equal(session.upload(view).numpy(), view)


def test_byte_order_does_not_matter(session):
    array = np.arange(10, dtype=">i4")
    back = session.upload(array).numpy()
    assert back.dtype == np.dtype("<i4")
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_tensors_arrive_whole(session, rng, order: str):
    array = np.asarray(rng.integers(0, 2**62, (2, 1024, 4099)), order=order)
    tensor = session.upload(array)
    assert tensor.nbytes > 64 << 20
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_write_overwrites(session, rng):
    tensor = session.create((30, 40), np.float32)
    assert tensor.state == "empty"
    for _ in range(2):
        array = rng.random((30, 40), dtype=np.float32)
        tensor.write(array)
        assert tensor.state == "ready"
        np.testing.assert_array_equal(tensor.numpy(), array)
    with pytest.raises(tensord.InvalidArgument, match=r"\(30, 40\)") as failure:
        tensor.write(array.T)
    assert failure.value.reason == "TENSOR_MISMATCH"


def test_slow_transfers_show_a_bar_on_a_terminal(monkeypatch, capsys):
    bar = progress.Progress("upload", 100)
    bar.update(50)
    bar.close()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bar = progress.Progress("upload", 100_000_000)
    bar.update(1)
    assert capsys.readouterr().err == ""
    now = 1.1
    bar.update(50_000_000)
    bar.close()
    shown = capsys.readouterr().err
    assert "upload [###############               ]  50% of 100 MB" in shown
    assert shown.endswith("\n")

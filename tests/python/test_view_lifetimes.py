"""Views have names, keep their memory, and leave nothing behind."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc

import numpy as np
import pytest

import tensord
from random_views import assert_same, numbered, repeated
from tensord.transforms import Index
from waiting import eventually


def test_views_have_names(session):
    tensor = session.upload(numbered((3, 4)), name="viewed-1")
    made = tensor.view([Index(np.s_[1:])], name="view-1")
    assert made.name == "view-1" and made.viewed == "viewed-1"
    with pytest.raises(tensord.AlreadyExists, match="view-1"):
        tensor.view(name="view-1")
    del made
    gc.collect()
    session.link.keeper.flush()
    found = session.tensor("view-1")
    listed = {each.name: each for each in session.list()}
    for view in found, listed["view-1"]:
        assert view.is_view and view.viewed == "viewed-1"
        assert view.shape == (2, 4) and view.strides == (32, 8)
    assert not listed["viewed-1"].is_view
    found.delete()
    tensor.delete()


def test_unnamed_views_leave_with_their_last_reference(session):
    tensor = session.upload(numbered((3, 4)))
    names = [row.full_name for row in tensor]
    gc.collect()
    session.link.keeper.flush()
    assert not {each.full_name for each in session.list()} & {*names}


def test_views_keep_what_they_view(address):
    with tensord.connect(address, transport="grpc") as session:  # In its own memory.
        check_views_keep_what_they_view(session)


def check_views_keep_what_they_view(session):
    session.link.keeper.flush()
    before = session.describe().memory_used_bytes
    tensor = session.upload(np.ones((256, 256)))
    used = session.describe().memory_used_bytes
    assert used >= before + 8 * 256 * 256
    view = tensor[:, :2]
    column = view[:, 0].reshape(16, 16)
    assert session.describe().memory_used_bytes == used
    name = tensor.name
    tensor.delete()
    view[3] = 7
    view.delete()
    assert session.describe().memory_used_bytes == used
    assert column.viewed == name and column[0, 3].item() == 7
    assert column.numpy().sum() == 16 * 16 + 6
    with pytest.raises(tensord.NotFound, match=view.name):
        view[0]
    del column
    gc.collect()
    session.link.keeper.flush()
    assert session.describe().memory_used_bytes == before


def test_views_of_deleted_tensors_are_not_found(session):
    tensor = session.upload(np.ones(3))
    tensor.delete()
    for call in lambda: tensor[1:], lambda: tensor.T, lambda: tensor.reshape(3, 1):
        with pytest.raises(tensord.NotFound, match=tensor.name):
            call()


def test_views_have_the_state_of_the_memory(session):
    tensor = session.create((2, 3), np.float64)
    part, all_of_it = tensor[1], tensor.T
    assert part.state == all_of_it.state == "empty"
    for call in part.numpy, all_of_it.numpy, part[::-1].numpy, tensor.pad(1).numpy:
        with pytest.raises(tensord.FailedPrecondition) as failure:
            call()
        assert failure.value.reason == "TENSOR_NOT_READY"
    with pytest.raises(tensord.FailedPrecondition):
        part.write(np.ones(3))
    all_of_it.write(numbered((3, 2)))
    assert part.state == tensor.state == "ready"
    np.testing.assert_array_equal(tensor.numpy(), numbered((3, 2)).T)
    part.write(-np.ones(3))
    np.testing.assert_array_equal(all_of_it.numpy()[:, 1], -np.ones(3))


def test_copies_of_views_are_packed(session, address):
    array = numbered((4, 5))
    tensor = session.upload(array)
    views = [tensor.T, tensor[::-1], tensor.pad(1), tensor.broadcast_to((2, 4, 5))]
    expected = [array.T, array[::-1], np.pad(array, 1), repeated(array, (2, 4, 5))]
    with tensord.connect(address) as other:
        for view, seen in zip(views, expected):
            for copied in view.copy(), view.copy(session=other):
                assert not copied.is_view and copied.strides == seen.copy().strides
                assert_same(copied, seen)
            named = view.copy("copied", session=other)
            assert named.session is other and other.tensor("copied").shape == seen.shape
            named.delete()


@pytest.mark.timing
def test_downloads_leave_nothing_behind(session):
    tensor = session.upload(numbered((30, 40)))
    views = [tensor.T, tensor[::2, ::-1], tensor.pad(2), tensor.T.reshape(-1)]
    gc.collect()  # What errors of earlier tests refer to.
    session.link.keeper.flush()
    before = session.describe()
    for view in views:
        view.numpy(timeout=20)
        for timeout in 1e-9, 1e-5, 1e-4, 1e-3:
            with contextlib.suppress(tensord.DeadlineExceeded):
                view.numpy(timeout)
    session.link.keeper.flush()

    def is_as_before() -> bool:
        after = session.describe()
        return (after.tensor_count, after.memory_used_bytes) == (
            before.tensor_count,
            before.memory_used_bytes,
        )

    assert eventually(is_as_before)  # Calls whose time is up end a moment later.


@pytest.mark.parametrize("timeout", [0, -1, "x"])
def test_timeouts_of_views_are_checked(session, address, timeout):
    view = session.upload(np.ones((2, 3)))[::-1]
    with tensord.connect(address) as other:
        for call in (
            lambda: view.numpy(timeout),
            lambda: view.write(np.ones((2, 3)), timeout),
            lambda: view.copy(timeout=timeout, session=other),
            lambda: view.view(timeout=timeout),
        ):
            with pytest.raises((ValueError, TypeError), match="timeout is"):
                call()


@pytest.mark.timing
def test_parts_are_read_while_others_are_written(session):
    tensor = session.upload(np.zeros((16, 64)))

    def work(row: int) -> None:
        for i in range(20):
            tensor[row] = i
            np.testing.assert_array_equal(tensor[row].numpy(), np.full(64, i))
            tensor[::-1][15 - row].write(np.full(64, i + 0.5))
            assert tensor[row, 5].item() == i + 0.5

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for done in [pool.submit(work, row) for row in range(16)]:
            done.result()


def test_large_views_arrive_whole(session, rng):
    array = rng.integers(0, 2**62, (1024, 3 * 1021))
    tensor = session.upload(array)
    for here, there in [
        (tensor.T, array.T),
        (tensor[::-1, 1::2], array[::-1, 1::2]),
        (tensor.T.reshape(3, -1), array.T.reshape(3, -1)),
    ]:
        np.testing.assert_array_equal(here.numpy(), there)
    values = rng.integers(0, 2**62, (1021, 3 * 1024))
    tensor.T.reshape(1021, -1).write(values)
    np.testing.assert_array_equal(tensor.numpy(), values.reshape(-1, 1024).T)


def test_arrays_of_views_own_their_elements(session):
    tensor = session.upload(numbered((3, 4)))
    for view in tensor.broadcast_to((2, 3, 4)), tensor.sliding_window_view(2, 1):
        array = view.numpy()
        array[...] = numbered(array.shape)
        np.testing.assert_array_equal(array, numbered(array.shape))

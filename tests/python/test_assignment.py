"""What is written through views, their tensors have."""

from __future__ import annotations

import numpy as np
import pytest

import tensord
from random_views import is_small, numbered, random_key, random_shape, random_step


@pytest.mark.parametrize("seed", range(10))
def test_writing_through_views_reaches_the_elements_that_they_see(session, seed: int):
    rng = np.random.default_rng(2000 + seed)
    for _ in range(20):
        # Which element each index has; -1 is padding.
        places = numbered(random_shape(rng, 4), np.int64)
        base = places.copy()
        tensor = view = session.upload(base)
        for _ in range(rng.integers(1, 4)):
            step, _ = random_step(rng, places.shape)
            if is_small(step(places)):
                places, view = step(places), step(view)
        visible = places >= 0
        values = 1000 + rng.permutation(places.size).reshape(places.shape)
        if view.is_writable:
            assert len(np.unique(places[visible])) == np.sum(visible)
            view.write(values)
            base.reshape(-1)[places[visible]] = values[visible]
        else:
            with pytest.raises(tensord.InvalidArgument) as failure:
                view.write(values)
            assert failure.value.reason == "OUTPUT_NOT_INJECTIVE"
        np.testing.assert_array_equal(tensor.numpy(), base)
        tensor.write(-base)
        expected = np.full(places.shape, -1)
        expected[visible] = -base.reshape(-1)[places[visible]]
        np.testing.assert_array_equal(view.numpy(), expected)


@pytest.mark.parametrize("seed", range(10))
def test_assignment_broadcasts_as_numpy_does(session, seed: int):
    rng = np.random.default_rng(3000 + seed)
    for _ in range(20):
        base = numbered(random_shape(rng, 4), np.int64)
        key = random_key(rng, base.shape)
        key += () if Ellipsis in key else (Ellipsis,)
        shape = [1 if rng.random() < 0.3 else extent for extent in base[key].shape]
        shape = shape[rng.integers(0, len(shape) + 1) :]
        value = -1 - numbered((*[1] * int(rng.integers(0, 3)), *shape), np.int64)
        expected = base.copy()
        expected[key] = value
        for given in value, session.upload(value):
            tensor = session.upload(base)
            tensor[key] = given
            np.testing.assert_array_equal(tensor.numpy(), expected)


def test_assignment_converts_as_numpy_does(session):
    tensor = session.upload(np.zeros((2, 3), np.float32))
    tensor[0] = 1
    tensor[1, :2] = [2.5, 1e-3]
    tensor[1, 2] = np.float64(np.pi)
    expected = np.array([[1, 1, 1], [2.5, 1e-3, np.pi]], np.float32)
    np.testing.assert_array_equal(tensor.numpy(), expected)
    tensor[0, :] = session.upload(np.array([1e-3, 2, 3]))
    np.testing.assert_array_equal(tensor[0].numpy(), np.float32([1e-3, 2, 3]))
    tensor[1] = session.upload(np.array([5, -6, 127], np.int8))
    np.testing.assert_array_equal(tensor[1].numpy(), np.float32([5, -6, 127]))
    small = session.upload(np.zeros(3, np.int8))
    small[...] = session.upload(np.array([2.9, -3.9, 100]))
    assert small.numpy().tolist() == [2, -3, 100]
    small[...] = session.upload(np.array([1 + 2j, -2.5 + 1j, 0]))
    assert small.numpy().tolist() == [1, -2, 0]
    small[1] = 2.9
    assert small.numpy().tolist() == [1, 2, 0]
    with pytest.raises((TypeError, ValueError)):
        small[0] = "one"
    halves = session.upload(np.zeros(3, tensord.bfloat16))
    halves[1:] = 1.5
    assert halves.numpy().tolist() == [0, 1.5, 1.5]


@pytest.mark.parametrize(
    "source", ["?", "i1", "u1", "i2", "i4", "i8", "f2", "f4", "f8"]
)
@pytest.mark.parametrize("target", ["?", "i1", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_tensors_of_other_dtypes_are_assigned_as_in_numpy(session, source, target):
    value = np.array([1, 0, 2]).astype(source)
    expected = np.zeros((2, 3), target)
    tensor = session.upload(expected)
    expected[1] = value
    tensor[1] = session.upload(value)
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_assignment_to_all_needs_no_contents(session):
    tensor = session.create((2, 3), np.float64)
    with pytest.raises(tensord.FailedPrecondition) as failure:
        tensor[0] = 1
    assert failure.value.reason == "TENSOR_NOT_READY"
    for key in ..., slice(None), (slice(None), slice(None)):
        tensor[key] = 4
        np.testing.assert_array_equal(tensor.numpy(), np.full((2, 3), 4))
    with pytest.raises(IndexError, match="3 indices for 2 modes"):
        tensor[:, :, :] = 1
    with pytest.raises(IndexError, match="second ellipsis"):
        tensor[..., ...] = 1


def test_assignment_from_what_overlaps_copies_first(session):
    array = numbered((5, 6))
    tensor = session.upload(array)
    for to, of in [
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:, ::-1], np.s_[:, :]),
        (np.s_[:, 0], np.s_[:, 1]),
        (np.s_[:5, :5], np.s_[0, :5]),
    ]:
        array[to] = array[of].copy()
        tensor[to] = tensor[of]
        np.testing.assert_array_equal(tensor.numpy(), array)


def test_writes_to_views_are_of_their_shape_and_dtype(session):
    view = session.upload(np.zeros((3, 4)))[:, 1:3]
    for array in np.ones(2), np.ones((3, 2), np.float32):
        with pytest.raises(tensord.InvalidArgument) as failure:
            view.write(array)
        assert failure.value.reason == "TENSOR_MISMATCH"


def test_masks_say_what_is_overwritten(session):
    rng = np.random.default_rng(5)
    base = rng.random((3, 4, 5))
    masks = [base < 0.5, base[:, :, 0] < 0.5, base[:, 0, 0] < 2, np.zeros(3, bool)]
    for mask in masks:
        for value in 7, np.nan, np.float32(2.5), True:
            expected = base.copy()
            expected[mask] = value
            for key in mask, session.upload(mask):
                tensor = session.upload(base)
                tensor[key] = value
                np.testing.assert_array_equal(tensor.numpy(), expected)
                tensor[key] = session.upload(np.asarray(9.0))
                expected_nine = np.where(np.isin(expected, base[~mask]), expected, 9)
                np.testing.assert_array_equal(tensor.numpy(), expected_nine)
    tensor = session.upload(base)
    tensor[tensor < 0.5] = 0
    np.testing.assert_array_equal(tensor.numpy(), np.where(base < 0.5, 0, base))
    tensor[1][tensor[1] == 0] = -1
    assert (tensor.numpy()[1] != 0).all() and (tensor.numpy()[0] == 0).any()
    truths = session.upload(base < 0.5)
    truths[truths] = False
    assert not truths.numpy().any()
    for key in (np.array([True, False, True]),), [True, False, True]:
        tensor[key] = np.array([4.0])
        assert (tensor[::2] == 4).all() and not (tensor[1] == 4).any()
    single = session.upload(np.float64(-1))
    single[single < 0] = 3
    assert single.item() == 3


def test_masks_that_do_not_fit_are_refused(session):
    tensor = session.upload(np.zeros((3, 4)))
    with pytest.raises(IndexError, match=r"the mask has shape \(4,\), wanted that of"):
        tensor[np.ones(4, bool)] = 1
    with pytest.raises(ValueError, match="a value of shape .2,., wanted one number"):
        tensor[np.ones((3, 4), bool)] = [1, 2]
    there = tensor == 0
    for key in there, (there, 1):
        with pytest.raises(tensord.Unimplemented, match="is a mask on the server"):
            tensor[key]
    with pytest.raises(IndexError, match="item 1 of the index is a mask of shape .3,."):
        tensor[:, np.ones(3, bool)] = 2
    assert not tensor.numpy().any()


ALONG = [
    [0, 2],
    [3, 3, 1],
    np.array([-1, 0]),
    (slice(None), [1, 4]),
    (..., [5, 0, 5]),
    (slice(1, None), slice(None), [2]),
    (None, [1, 2]),
    [],
    (slice(None, None, -1), [0, 2]),
    [1],
    (..., [-2, 3], slice(None)),
    (1, [0, 3]),
    (slice(None), [0, 3], 2),
]


@pytest.mark.parametrize("key", ALONG, ids=str)
def test_indices_say_what_is_overwritten(session, key):
    rng = np.random.default_rng(3)
    base = rng.random((4, 5, 6))
    shape = base[key].shape
    values = [7, rng.random(shape), rng.random(shape[-1:]), np.ones((1,) * len(shape))]
    for value in values:
        expected = base.copy()
        expected[key] = value
        for given in value, session.upload(np.asarray(value, "f4")):
            tensor = session.upload(base)
            tensor[key] = given
            rtol = 0 if given is value else 1e-6
            np.testing.assert_allclose(tensor.numpy(), expected, rtol=rtol)
    tensor = session.upload(base)
    tensor[[0, 1]] = tensor[[1, 0]]
    tensor[[2, 3]] = tensor[3:1:-1]
    np.testing.assert_array_equal(tensor.numpy(), base[[1, 0, 3, 2]])
    part = (np.array([True, False, True, False]), slice(None), slice(1, 2))
    tensor[part] = -1
    assert (tensor.numpy()[part] == -1).all() and (tensor.numpy() == -1).sum() == 10


@pytest.mark.parametrize("is_recorded", [False, True])
def test_what_overlaps_is_copied_before_it_is_overwritten(address, is_recorded):
    expected = np.arange(16.0).reshape(4, 4)
    keys = [2, 0, 3, 1]
    with tensord.connect(address, recorded=is_recorded) as opened:
        tensor = opened.upload(expected)
        tensor[keys] = tensor
        tensor[:, keys] = tensor
        tensor[[0, 1]] = tensor[1:3]
        tensor[[0]] = tensor[1]
        tensor[tensor > 9] = tensor[0, 0]
        part = tensor[:2]
        part[[1, 0]] = part
        truths = tensor > 3
        truths[truths.T] = False
        expected[keys] = expected.copy()
        expected[:, keys] = expected.copy()
        expected[[0, 1]] = expected[1:3].copy()
        expected[[0]] = expected[1]
        expected[expected > 9] = expected[0, 0]
        expected[[1, 0]] = expected[:2].copy()
        known = expected > 3
        known[known.T.copy()] = False
        np.testing.assert_array_equal(tensor.numpy(), expected)
        np.testing.assert_array_equal(truths.numpy(), known)


def test_indices_that_do_not_fit_are_refused(session):
    tensor = session.upload(np.zeros((3, 4)))
    with pytest.raises(
        IndexError, match="index 3 is out of range, mode 0 has extent 3"
    ):
        tensor[[0, 3]] = 1
    with pytest.raises(
        ValueError, match=r"shape \(3,\) does not broadcast to \(2, 4\)"
    ):
        tensor[[0, 1]] = np.ones(3)
    indices = session.upload(np.array([0, 1]))
    for key in ([0], [1]), indices, [[0], [1]], (slice(None), indices):
        with pytest.raises(tensord.Unimplemented, match="overwritten along one mode"):
            tensor[key] = 1
    assert not tensor.numpy().any()

"""Views see what NumPy's do, and nothing moves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import tensord
from random_views import (
    assert_same,
    is_small,
    numbered,
    padded,
    random_factors,
    random_key,
    random_shape,
    random_step,
    repeated,
    windowed,
)
from tensord import _dtypes as dtypes
from tensord.transforms import (
    Diagonal,
    Embed,
    Freeze,
    Index,
    Insert,
    Merge,
    Modulo,
    Offset,
    Pad,
    PassThrough,
    Replicate,
    Slice,
    Unmerge,
    Xor,
    place,
)


@pytest.mark.parametrize("seed", range(20))
def test_indices_mean_what_they_mean_to_numpy(session, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        array = numbered(random_shape(rng), np.int32)
        key = random_key(rng, array.shape)
        assert_same(session.upload(array)[key], array[key])


@pytest.mark.parametrize("seed", range(10))
def test_reshaping_counts_as_numpy_does(session, seed: int):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        array = numbered(random_shape(rng), np.int32)
        tensor = session.upload(array)
        axes = rng.permutation(array.ndim)
        wanted = random_factors(rng, array.size)
        view = tensor.transpose(*axes).reshape(*wanted)
        assert_same(view, array.transpose(axes).reshape(wanted))


@pytest.mark.parametrize("seed", range(20))
def test_views_of_views_are_what_numpy_would_copy(session, seed: int):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(10):
        array = numbered(random_shape(rng, 4), np.int64)
        view, names = session.upload(array), []
        for _ in range(rng.integers(1, 6)):
            step, name = random_step(rng, array.shape)
            if is_small(step(array)):
                array, view = step(array), step(view)
                names.append(name)
                assert_same(view, array, names)


def test_rows_are_views(session):
    array = numbered((3, 4))
    tensor = session.upload(array)
    assert len(tensor) == 3 and len(tensor[:2]) == 2
    first, _, last = tensor
    np.testing.assert_array_equal(last.numpy(), array[2])
    first[...] = 9
    assert tensor[0, 3].item() == 9
    assert [float(x) for x in reversed(tensor[1])] == [7, 6, 5, 4]
    scalar = tensor[0, 0]
    for call in len, iter:
        with pytest.raises(TypeError, match="without modes"):
            call(scalar)
    with pytest.raises(TypeError):
        9.0 in tensor  # noqa: B015
    assert scalar and not (tensor[1, 1:1].size or session.upload(np.zeros(1)))
    with pytest.raises(ValueError, match="wanted one"):
        bool(tensor)


METHODS = {
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(),
    "transpose axes": lambda x: x.transpose(1, -1, 0, 2),
    "transpose tuple": lambda x: x.transpose((1, 3, 0, 2)),
    "swapaxes": lambda x: x.swapaxes(0, -2),
    "reshape": lambda x: x.reshape(4, -1),
    "reshape tuple": lambda x: x.reshape((2, 2, 5, 3)),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.T.flatten(),
    "squeeze": lambda x: x.squeeze(),
    "squeeze one": lambda x: x.squeeze(2),
    "squeeze tuple": lambda x: x.squeeze((-2,)),
    "diagonal": lambda x: x.diagonal(),
    "diagonal above": lambda x: x.diagonal(1, 3, 0),
    "diagonal below": lambda x: x.diagonal(-2, axis1=1, axis2=3),
    "diagonal beyond": lambda x: x.diagonal(9),
    "indexed": lambda x: x[..., None, 1:3][:, ::-1][-1],
}
FUNCTIONS = {
    "moveaxis": (lambda x: x.moveaxis(0, -1), lambda x: np.moveaxis(x, 0, -1)),
    "moveaxis several": (
        lambda x: x.moveaxis((0, 1), (-1, 0)),
        lambda x: np.moveaxis(x, (0, 1), (-1, 0)),
    ),
    "expand_dims": (lambda x: x.expand_dims(-1), lambda x: np.expand_dims(x, -1)),
    "expand_dims several": (
        lambda x: x.expand_dims((0, 3)),
        lambda x: np.expand_dims(x, (0, 3)),
    ),
    "broadcast_to": (
        lambda x: x.broadcast_to((2, 4, 5, 7, 3)),
        lambda x: np.broadcast_to(x, (2, 4, 5, 7, 3)),
    ),
    "pad": (lambda x: x.pad(1), lambda x: np.pad(x, 1)),
    "pad pair": (lambda x: x.pad((1, 2), 5), lambda x: padded(x, (1, 2), 5)),
    "pad pairs": (
        lambda x: x.pad([(0, 0), (1, 0), (0, 2), (3, 3)], value=-2.5),
        lambda x: padded(x, [(0, 0), (1, 0), (0, 2), (3, 3)], -2.5),
    ),
    "pad mapping": (
        lambda x: x.pad({1: (1, 0), -1: 2}),
        lambda x: np.pad(x, [(0, 0), (1, 0), (0, 0), (2, 2)]),
    ),
    "flip": (lambda x: x.flip(), np.flip),
    "flip some": (lambda x: x.flip((0, -1)), lambda x: np.flip(x, (0, -1))),
    "windows": (
        lambda x: x.sliding_window_view((2, 3, 1, 3)),
        lambda x: sliding_window_view(x, (2, 3, 1, 3)),
    ),
    "windows twice": (
        lambda x: x.sliding_window_view((2, 3), (1, 1)),
        lambda x: sliding_window_view(x, (2, 3), (1, 1)),
    ),
    "windows and back": (
        lambda x: x.sliding_window_view(2, 0)[:, 1:, 0].T.reshape(-1, 4),
        lambda x: sliding_window_view(x, 2, 0)[:, 1:, 0].T.reshape(-1, 4),
    ),
}


@pytest.mark.parametrize("name", [*METHODS, *FUNCTIONS])
def test_methods_do_what_numpys_do(session, name: str):
    array = numbered((4, 5, 1, 3))
    here, there = FUNCTIONS.get(name) or (METHODS[name], METHODS[name])
    view = here(session.upload(array))
    assert view.is_view
    assert_same(view, there(array))


@pytest.mark.parametrize(
    ("shape", "see"),
    [
        ((3, 4, 6), lambda x: x.T),
        ((3, 4, 6), lambda x: x[1:, ::2]),
        ((3, 4, 6), lambda x: x[::-1, :, ::-2]),
        ((3, 4, 6), lambda x: repeated(x, (2, 3, 4, 6))),
        ((3, 4, 6), lambda x: windowed(x, 2, 1)),
        ((4, 4, 6), lambda x: x.diagonal()),
        ((4, 3, 6), lambda x: x.reshape(2, 2, 3, 3, 2)[:, :, 1:]),
        ((4, 3, 6), lambda x: x[:, :2].reshape(2, 2, 12).T),
        ((4, 3, 6), lambda x: x[::2].swapaxes(1, 2).reshape(2, 2, 3, 3)),
    ],
)
def test_strides_are_numpys(session, shape, see):
    array = numbered(shape, np.float32)
    tensor = session.upload(array)
    view = see(tensor)
    assert tensor.strides == array.strides and view.strides == see(array).strides
    assert view.nbytes == 4 * view.size
    assert view.is_gathered == (min(view.strides) < 0)
    assert not tensor.is_view and tensor.viewed is None and tensor.is_writable
    assert view.is_view and view.viewed == tensor.name and not view.may_pad
    assert f"viewed='{tensor.name}'" in repr(view)


def test_views_without_strides_say_so(session):
    tensor = session.upload(numbered((3, 4)))
    for view in tensor.T.reshape(-1), tensor.pad((1, 0)), tensor[:0].pad(1):
        assert view.strides is None and view.is_gathered and view.is_writable
    assert tensor.pad(1).may_pad and not tensor.pad(1)[1:-1, 1:-1].may_pad
    assert tensor.pad(1)[1:-1, 1:-1].strides == tensor.strides
    assert not tensor.broadcast_to((2, 3, 4)).is_writable
    assert not tensor.sliding_window_view(2, 0).is_writable


def test_cute_slices_keep_the_modes_of_none(session):
    array = numbered((2, 3, 4))
    tensor = session.upload(array)
    assert_same(tensor.cute_slice(None, 1, None), array[:, 1])
    assert_same(tensor.cute_slice(1, None, None), array[1])
    assert_same(tensor.cute_slice(None, None, None), array)
    assert tensor.cute_slice(0, 2, 1).item() == array[0, 2, 1]
    assert tensor.cute_slice(0, None, 1).strides == (32,)
    with pytest.raises(IndexError, match="has 2 items, wanted 3"):
        tensor.cute_slice(None, 1)
    assert_same(tensor.cute_slice((None, 1), 2), array[:, 1, 2])
    assert_same(tensor.cute_slice(((None,), (0, (None,)))), array[:, 0])
    with pytest.raises(IndexError, match="has 4 items, wanted 3"):
        tensor.cute_slice((None, 1), (2, 3))
    with pytest.raises(IndexError, match="wanted an int or None"):
        tensor.cute_slice((None, ...), 1)


def test_transforms_make_the_views_that_they_say(session):
    array = numbered((4, 6))
    tensor = session.upload(array)

    def seen(*stages, padding=None):
        return tensor.view(stages, padding).numpy()

    same = place(PassThrough(), 0, 0)
    np.testing.assert_array_equal(seen(), array)
    np.testing.assert_array_equal(
        seen([place(Merge(order="F"), (0, 1), 0)]), array.ravel(order="F")
    )
    np.testing.assert_array_equal(
        seen([same, place(Unmerge((2, 3)), 1, (1, 2))]), array.reshape(4, 2, 3)
    )
    np.testing.assert_array_equal(
        seen([same, place(Unmerge((2, 3), "F"), 1, (1, 2))]),
        array.reshape(4, 3, 2).swapaxes(1, 2),
    )
    np.testing.assert_array_equal(
        seen([place(Freeze(2), 0, ()), place(Slice(4, -1, -2), 1, 0)]), array[2, 4::-2]
    )
    np.testing.assert_array_equal(
        seen([same, place(Pad(1, 2), 1, 1)], padding=8),
        np.pad(array, [(0, 0), (1, 2)], constant_values=8),
    )
    np.testing.assert_array_equal(
        seen([same, place(PassThrough(), 1, 2), place(Insert(3), (), 1)]),
        np.repeat(array[:, None], 3, 1),
    )
    np.testing.assert_array_equal(
        seen([same, place(PassThrough(), 1, 1), place(Replicate((2, 3)), (), (2, 3))]),
        np.broadcast_to(array[..., None, None], (4, 6, 2, 3)),
    )
    np.testing.assert_array_equal(
        seen([same, place(Embed((2, 3), (2, -1), 2), 1, (1, 2))]),
        array[:, [[2, 1, 0], [4, 3, 2]]],
    )
    np.testing.assert_array_equal(
        seen([same, place(Modulo(4, 10), 1, 1)]), array[:, np.arange(10) % 4]
    )
    np.testing.assert_array_equal(
        seen([same, place(Offset(2, 3), 1, 1)]), array[:, 2:5]
    )
    np.testing.assert_array_equal(
        seen([place(Xor(), (1, 0), (0, 1))]),
        array.T[np.arange(6)[:, None], np.arange(4) ^ (np.arange(6)[:, None] % 4)],
    )
    np.testing.assert_array_equal(
        seen([same, place(Slice(1, 5), 1, 1)], [place(Diagonal(), (0, 1), 0)]),
        array.diagonal(1),
    )
    np.testing.assert_array_equal(
        seen(Index(np.s_[None, 1:]), [place(Merge(), (1, 0, 2), 0)]), array[1:].ravel()
    )


def test_the_tile_of_ck_tiles_page_is_merged(session):
    issues, waves_m, waves_k, warp, vector = 2, 2, 2, 4, 8
    shape = (issues, waves_m, waves_k, warp, vector)
    array = numbered(shape, np.float32)
    view = session.upload(array).view(
        [
            [
                place(PassThrough(), 0, 0),
                place(Merge(), (1, 2), 1),
                place(Merge(), (3, 4), 2),
            ]
        ]
    )
    assert_same(view, array.reshape(issues, waves_m * waves_k, warp * vector))
    assert view.strides is not None


@pytest.mark.parametrize("dtype", dtypes.DTYPES, ids=str)
def test_padding_has_the_dtype(session, dtype: np.dtype):
    array = (numbered((2, 3)) % 2).astype(dtype)
    values = {"b": [True], "i": [-100, 7], "u": [200], "c": [1.5 - 2j, 3]}
    for value in values.get(dtype.kind, [-2.5, np.inf, np.nan]):
        expected = np.full((4, 6), value, dtype)
        expected[1:-1, 1:-2] = array
        view = session.upload(array).pad([(1, 1), (1, 2)], value)
        assert view.numpy().tobytes() == expected.tobytes()
        turned = view.T[::-1].copy().numpy()
        assert turned.tobytes() == expected.T[::-1].tobytes()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(np.int8, 300), (np.uint8, -1), (np.int32, 0.5), (np.bool_, 2), (np.float32, 1j),
     (np.float16, 1e6)],
)  # fmt: skip
def test_padding_is_a_value_of_the_dtype(session, dtype, value):
    tensor = session.upload(np.zeros(2, dtype))
    with pytest.raises(tensord.InvalidArgument, match="padding"):
        tensor.pad(1, value)


def test_padding_has_one_value(session):
    padded_once = session.upload(numbered((3,))).pad(1, 5)
    with pytest.raises(tensord.InvalidArgument, match="another value") as failure:
        padded_once.pad(1, 6)
    assert failure.value.reason == "PADDING_DIFFERS"
    twice = padded_once.pad(1, 5).view([[place(Pad(1, 0), 0, 0)]])
    assert twice.numpy().tolist() == [5, 5, 5, 0, 1, 2, 5, 5]
    assert padded_once.copy().pad((1, 0), 6).numpy().tolist() == [6, 5, 0, 1, 2, 5]
    with pytest.raises(TypeError, match="padding is 'a', wanted a number"):
        padded_once.pad(1, "a")


@pytest.mark.parametrize(
    ("key", "words", "reason"),
    [
        (3, "index 3 .*mode 0 of extent 3", "INDEX_OUT_OF_RANGE"),
        ((0, -5), "index -5 .*mode 1 of extent 4", "INDEX_OUT_OF_RANGE"),
        ((0, 0, 0), "3 indices for 2 modes", "TOO_MANY_INDICES"),
        ((..., 0, ...), "second ellipsis", "ELLIPSIS_REPEATED"),
        (True, "advanced indexing", "INDEX_UNSUPPORTED"),
        (1.0, "of type float", "INDEX_UNSUPPORTED"),
        (2**70, "out of range", "INDEX_OUT_OF_RANGE"),
    ],
    ids=str,
)
def test_wrong_indices_are_index_errors(session, key, words, reason):
    tensor = session.upload(numbered((3, 4)))
    for call in lambda: tensor[key], lambda: tensor.__setitem__(key, 1):
        with pytest.raises(IndexError, match=words) as failure:
            call()
        assert isinstance(failure.value, tensord.InvalidArgument)
        assert failure.value.reason == reason
    with pytest.raises(IndexError):
        numbered((3, 4))[1, 2, 3]


def test_slices_have_steps(session):
    tensor = session.upload(numbered((3, 4)))
    with pytest.raises(ValueError, match="position 1 has step 0"):
        tensor[0, ::0]
    with pytest.raises(TypeError, match="item 0 .*wanted ints or None"):
        tensor[1.0:]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.reshape(5), ValueError, r"12 elements of shape \(3, 4\)"),
        (lambda t: t.reshape(-1, -1), ValueError, "at most one -1"),
        (lambda t: t.reshape(5, -1), ValueError, "do not fit"),
        (lambda t: t.reshape("a"), TypeError, "shape is 'a'"),
        (lambda t: t.reshape(2, 6.0), TypeError, "wanted an int or a sequence"),
        (lambda t: t.transpose(0), ValueError, "for 2 modes"),
        (lambda t: t.transpose(0, 0), ValueError, "names a mode twice"),
        (lambda t: t.transpose(0, 2), IndexError, "axes is 2, but there are 2 modes"),
        (lambda t: t.swapaxes(0, -3), IndexError, "axis2 is -3"),
        (lambda t: t.moveaxis((0, 1), 0), ValueError, "wanted as many"),
        (lambda t: t.squeeze(0), ValueError, "mode 0 .*extent 3, wanted 1"),
        (lambda t: t.expand_dims(4), IndexError, "axis is 4"),
        (lambda t: t.broadcast_to((3, 5)), ValueError, "does not broadcast to"),
        (lambda t: t.broadcast_to(4), ValueError, "does not broadcast to"),
        (lambda t: t.broadcast_to((-1, 3, 4)), ValueError, "extents are"),
        (lambda t: t.pad(-1), ValueError, "numbers >= 0"),
        (lambda t: t.diagonal(0, 1, 1), ValueError, "both mode 1"),
        (lambda t: t[0].diagonal(), ValueError, "at least 2"),
        (lambda t: t.sliding_window_view(2), ValueError, "for 2 modes"),
        (lambda t: t.sliding_window_view((2, 5)), ValueError, "fit mode 1"),
        (lambda t: t.flip(2), IndexError, "axis is 2"),
        (lambda t: t.flip(0.5), TypeError, "axis is 0.5"),
        (lambda t: t.view("stages"), TypeError, "transform of a stage is of type str"),
        (lambda t: t.view([[]]), ValueError, "lower mode 0 is named by no transform"),
        (
            lambda t: t.view([[], [place(Merge(), (0, 1), 0)]]),
            ValueError,
            "stage 0",
        ),
        (
            lambda t: t.view([[place(Merge(), (0, 1), 0)], [place(Freeze(12), 0, ())]]),
            IndexError,
            r"stage 1, transform 0 \(freeze\): index 12",
        ),
        (lambda t: t.view(name=5), TypeError, "name is of type int"),
    ],
)
def test_wrong_arguments_are_named(session, call, error, words: str):
    with pytest.raises(error, match=words):
        call(session.upload(numbered((3, 4))))

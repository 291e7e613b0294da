"""Elements are taken by indices, by functions, brackets, operations and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import tensord
import tensord.array as xp
from random_arrays import random_array

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "f2", "f4", "f8", "c8", "c16"]
A = np.arange(60.0).reshape(3, 4, 5)
SHAPES = [(7,), (1, 5), (3, 4), (4, 3, 2), (3, 1, 2, 2)]


@pytest.fixture(params=[False, True], ids=["awaited", "deferred"])
def opened(address: str, request: Any) -> Iterator[tensord.Session]:
    with tensord.connect(address, deferred=request.param) as session:
        xp.use(session)
        yield session
        xp.use(None)


def some_indices(
    rng: np.random.Generator, extent: int, shape: tuple[int, ...]
) -> np.ndarray:
    dtype = rng.choice(["i1", "i2", "i4", "i8", "u1"])
    lowest = 0 if dtype == "u1" else -extent
    return rng.integers(lowest, extent, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_takes_as_numpy_does(
    opened: tensord.Session, rng: np.random.Generator, shape: tuple, dtype: str
) -> None:
    x = random_array(rng, shape, dtype)
    t = opened.upload(x)
    for axis in range(-len(shape), len(shape)):
        for unsigned in "u2", "u4", "u8":
            indices = np.zeros(2, unsigned)
            taken = xp.take(t, indices, axis=axis).numpy()
            np.testing.assert_array_equal(taken, np.take(x, indices, axis))
        for count in (), (3,), (0,), (2, 3):
            indices = some_indices(rng, x.shape[axis], count)
            expected = np.take(x, indices, axis)
            for given in indices, opened.upload(indices), indices.tolist():
                result = xp.take(t, given, axis=axis)
                np.testing.assert_array_equal(result.numpy(), expected)
                assert result.dtype == x.dtype and result.shape == expected.shape
        like = list(x.shape)
        like[axis] = 6
        for other in tuple(like), tuple(6 if each == 6 else 1 for each in like):
            indices = some_indices(rng, x.shape[axis], other)
            expected = np.take_along_axis(x, indices, axis)
            for operand in indices, opened.upload(indices):
                result = xp.take_along_axis(t, operand, axis=axis)
                np.testing.assert_array_equal(result.numpy(), expected)
    indices = some_indices(rng, x.size, (4, 2))
    np.testing.assert_array_equal(xp.take(t, indices).numpy(), np.take(x, indices))


def test_the_array_api_says_the_same(opened: tensord.Session) -> None:
    x, indices = np.arange(12.0).reshape(3, 4), np.array([[3, 0], [1, 1], [0, 2]])
    t = opened.upload(x)
    api = strict.asarray(x)
    for axis in 0, 1:
        taken = strict.take(api, strict.asarray([1, 0]), axis=axis)
        np.testing.assert_array_equal(xp.take(t, [1, 0], axis=axis), np.asarray(taken))
    along = strict.take_along_axis(api, strict.asarray(indices))
    result = xp.take_along_axis(t, opened.upload(indices))
    np.testing.assert_array_equal(result.numpy(), np.asarray(along))
    np.testing.assert_array_equal(np.take(t, indices[0], axis=1), x[:, [3, 0]])
    np.testing.assert_array_equal(np.take_along_axis(t, indices, 1), np.asarray(along))


KEYS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda i: i([2, 0]),
    "a list": lambda i: [2, 0, -1],
    "lists": lambda i: (slice(None), [[2, 0], [1, -1]]),
    "a tuple in a list": lambda i: ([(1, 2)], 0),
    "table": lambda i: i([[0, 1], [2, -3]]),
    "columns": lambda i: (slice(None), i([3, 0])),
    "last": lambda i: (..., i([4, 4])),
    "last and a new one": lambda i: (..., i([4, 4]), None),
    "in between": lambda i: (slice(1, None), i([3, -4, 0]), slice(None, None, -2)),
    "behind an int": lambda i: (1, i([3, 0])),
    "before an int": lambda i: (slice(None), i([3, 0]), 2),
    "apart from an int": lambda i: (1, slice(None), i([3, 0])),
    "apart from an int behind": lambda i: (i([2, 0]), slice(None), 1),
    "with a new mode": lambda i: (None, i([2, 0])),
    "new mode apart": lambda i: (i([2, 0]), None, 1),
    "none": lambda i: i([]),
    "pairs": lambda i: (i([2, 0, 1]), i([3, -4, 0])),
    "triples": lambda i: (i([2, 0]), i([3, 1]), i([0, 4])),
    "pairs behind": lambda i: (slice(None), i([3, 0]), i([4, -1])),
    "pairs of the last": lambda i: (..., i([3, 0]), i([4, -1])),
    "pairs apart": lambda i: (i([2, 0]), slice(1, None), i([4, -1])),
    "grid": lambda i: (i([[2], [0]]), i([[3, 0, 1]])),
    "grid of one row": lambda i: (i([[2]]), i([[3, 0, 1]]), i([[4]])),
    "pairs and an int": lambda i: (i([2, 0]), 1, i([0, 4])),
    "pairs of lists": lambda i: ([2, 0], [[1], [3]]),
    "pairs and a new mode": lambda i: (None, i([2, 0]), i([1, 1])),
    "none of two": lambda i: (i([]), i([])),
    "mask": lambda i: np.array([True, False, True]),
    "mask of two modes": lambda i: A[:, :, 0] > A[:, :, 0].mean(),
    "mask of all": lambda i: A > A.mean(),
    "mask behind": lambda i: (..., np.arange(5) > 2),
    "mask beside an int": lambda i: (1, np.arange(4) > 1),
    "mask and indices": lambda i: (np.arange(3) > 0, i([0, 3])),
    "mask in a list": lambda i: [True, False, True],
    "mask of nothing": lambda i: np.zeros(3, bool),
}


@pytest.mark.parametrize("key", KEYS)
def test_brackets_take_as_numpy_does(opened: tensord.Session, key: str) -> None:
    t = opened.upload(A)

    def array(values: Any) -> np.ndarray:
        return np.array(values, np.int64)

    expected = A[KEYS[key](array)]
    for convert in array, lambda values: opened.upload(array(values)):
        result = t[KEYS[key](convert)]
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)
        assert not result.overlaps(t)


def test_indices_that_are_here_are_refused_at_once(opened: tensord.Session) -> None:
    t = opened.upload(A)
    for call in (
        lambda: xp.take(t, [0, 4], axis=1),
        lambda: t[:, [0, 4]],
        lambda: xp.take_along_axis(t, np.full((3, 1, 5), -5), axis=1),
    ):
        with pytest.raises(IndexError, match=r"index -?[45] is out of range, mode 1"):
            call()
    with pytest.raises(IndexError, match="has index 18446744073709551615, wanted an"):
        xp.take(t, np.array([2**64 - 1], np.uint64), axis=0)
    with pytest.raises(tensord.Unimplemented, match="is a mask on the server"):
        t[opened.upload(np.array([True, False, True]))]
    with pytest.raises(IndexError, match=r"mask of shape \(1,\), wanted .*, \(3,\)"):
        t[[True]]
    for key in True, [0.5], b"ab", [opened.upload(1)]:
        with pytest.raises(tensord.errors.InvalidIndex, match="item 0 of the index is"):
            t[key]
    for indices in [0.5], ["a"], opened.upload(np.ones(2)), np.array([True, False]):
        with pytest.raises(TypeError, match="wanted (ints|an integer dtype)"):
            xp.take(t, indices, axis=0)
    with pytest.raises(tensord.errors.InvalidIndex, match="such that broadcast"):
        t[[0, 1], [1, 2, 3]]
    with pytest.raises(IndexError, match="index 5 is out of range, mode 2"):
        t[[0, 1], :, [1, 5]]
    with pytest.raises(tensord.Unimplemented, match="item 1 of the index is a tensor"):
        t[:, opened.upload(np.array([1]))] = 1
    with pytest.raises(tensord.errors.InvalidArgument, match="do not broadcast but"):
        xp.take_along_axis(t, np.zeros((2, 4, 5), int), axis=1)
    with pytest.raises(tensord.errors.InvalidArgument, match="has 1 modes and"):
        xp.take_along_axis(t, [0])
    np.testing.assert_array_equal(t.numpy(), A)


def test_indices_on_the_server_are_refused_there(opened: tensord.Session) -> None:
    t = opened.upload(A)
    message = (
        r"index 7 in b is out of range: the mode of a that is taken from has extent 4, "
        r"wanted -4 to 3"
    )
    with pytest.raises(IndexError, match=message) as caught:
        xp.take(t, opened.upload(np.array([0, 7, -5])[:2]), axis=1).numpy()
    assert isinstance(caught.value, tensord.errors.InvalidIndex)
    assert caught.value.reason == "INDEX_OUT_OF_RANGE"
    wide = opened.upload(np.zeros((3, 20)))
    for index in -(2**63), 2**63 - 1, -4, 3:
        for count in 1, 40:
            indices = np.zeros(count, np.int64)
            indices[-1] = index
            with pytest.raises(IndexError, match=f"index {index} in b is"):
                xp.take(wide, opened.upload(indices), axis=0).numpy()
            with pytest.raises(IndexError, match=f"index {index} in b is"):
                xp.take(wide.T, opened.upload(indices), axis=1).numpy()
    with pytest.raises(IndexError, match="has extent 0, and so none"):
        xp.take(xp.zeros((0,)), opened.upload(np.array([0]))).numpy()
    np.testing.assert_array_equal(t[1:, opened.upload(np.array([3]))], A[1:, [3]])


def test_what_is_out_of_range_may_be_filled(opened: tensord.Session) -> None:
    x, indices = A[:, 0, 0], np.array([2, 3, -4, -3])
    filled = opened.elementwise(
        x, "z", np.nan, "", "i", b=indices, modes_b="i", op="take"
    )
    np.testing.assert_array_equal(filled.numpy(), [40, np.nan, np.nan, 0])
    others = np.arange(4.0)
    filled = opened.elementwise(
        x, "z", others, "i", "i", b=indices, modes_b="i", op="take", alpha=2, gamma=-1
    )
    np.testing.assert_array_equal(filled.numpy(), [80, -1, -2, 0])


def test_views_are_taken_from_and_written_to(opened: tensord.Session) -> None:
    t = opened.upload(A)
    seen, known = t[::-1, 1:].T, A[::-1, 1:].T
    indices = opened.upload(np.array([[2, 0], [1, 1]]).T)
    np.testing.assert_array_equal(
        xp.take(seen, indices.T, axis=1).numpy(), np.take(known, [[2, 0], [1, 1]], 1)
    )
    repeated = t[:1, 0, 0].broadcast_to((4,))
    np.testing.assert_array_equal(xp.take(repeated, [3, 1]).numpy(), [0, 0])
    out = opened.upload(np.zeros((2, 4, 5)))
    assert xp.take(t, [2, 1], axis=0, out=out) is out
    xp.take(t, [0], axis=0, out=out[1:])
    np.testing.assert_array_equal(out.numpy(), A[[2, 0]])
    t[:2] = t[opened.upload(np.array([2, 0]))]
    np.testing.assert_array_equal(t.numpy(), A[[2, 0, 2]])


STATEMENTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "rows": ("D[i,k] := M[I[i],k]", lambda m, i, j: m[i]),
    "turned": ("D[k,i] := M[I[i],k]", lambda m, i, j: m[i].T),
    "two": ("D[i,k] := M[I[i],J[k]]", lambda m, i, j: m[np.ix_(i, j)]),
    "together": ("D[i] := M[I[i],J[i]]", lambda m, i, j: m[i, j]),
    "of indices": ("D[k] := M[I[J[k]],k]", lambda m, i, j: m[i[j], np.arange(4)]),
    "in a product": ("D[i,l] := M[I[i],k]*M[l,k]", lambda m, i, j: m[i] @ m.T),
    "summed": ("D[k] := M[I[i],k]*M[i,k]", lambda m, i, j: (m[i] * m).sum(0)),
    "of two of one label": (
        "D[i,k] := M[I[i],k]*N[I[i],k]",
        lambda m, i, j: m[i] * m[:, ::-1][i],
    ),
    "in a sum": (
        "D[i,k] := 2*M[I[i],k] - M[i,J[k]]/2",
        lambda m, i, j: 2 * m[i] - m[:, j] / 2,
    ),
    "of functions": (
        "D[i,k] := exp(M[I[i],k])^2 + where(M[i,k] > 3, M[I[i],k], 1)",
        lambda m, i, j: np.exp(m[i]) ** 2 + np.where(m > 3, m[i], 1),
    ),
    "conjugated": ("D[i,k] := conj(M[I[i],k])*M[i,k]'", lambda m, i, j: m[i] * m),
    "with blanks": ("D[i k] := M[I[i] k]", lambda m, i, j: m[i]),
    "where it is read": ("D[i,k] := M[i,k]\nD[i,k] = D[I[i],k]", lambda m, i, j: m[i]),
    "a scalar": ("s = M[I[],k]*M[I[],k]", lambda m, i, j: m[1] @ m[1]),
}


@pytest.mark.parametrize("case", STATEMENTS)
def test_statements_take(opened: tensord.Session, case: str) -> None:
    text, known = STATEMENTS[case]
    m = np.arange(16.0).reshape(4, 4) / 5
    i, j = np.array([3, 0, -1, 1], np.int32), np.array([2, -4, 1, 0], np.int8)
    given = np.array(1) if "I[]" in text else i
    names = {"I": given, **({"J": j} if "J[" in text else {})}
    if "N[" in text:
        names["N"] = m[:, ::-1]
    outputs = ["s" if text.startswith("s") else "D"]
    result = opened.run(text, M=m, outputs=outputs, **names)
    np.testing.assert_allclose(result.numpy(), known(m, i, j), rtol=1e-14)
    # Again, of a tensor.
    on_server = {name: opened.upload(each) for name, each in names.items()}
    result = opened.run(text, M=opened.upload(m), outputs=outputs, **on_server)
    np.testing.assert_allclose(result.numpy(), known(m, i, j), rtol=1e-14)


def test_statements_say_what_is_wrong(opened: tensord.Session) -> None:
    m = np.ones((4, 4))

    def refusal(text: str, **names: Any) -> str:
        with pytest.raises(tensord.Error) as caught:
            opened.run(text, M=m, **names).numpy()
        return f"{caught.value.reason}: {caught.value.message}"

    one = np.array([1])
    assert (
        "SYNTAX_ERROR: line 1, column 3: got I[i] for a label, wanted labels of an"
        in (refusal("D[I[i],k] := M[i,k]", I=one))
    )
    assert "INDEX_NOT_INTEGER: line 1, column 11: 'M[I[i],k]' takes at elements of" in (
        refusal("D[i,k] := M[I[i],k]", I=np.ones(1))
    )
    told = refusal("D[i,k] := M[i,k]\nE[i,k] := M[I[I[i]],k]", I=np.array([0, 0, 0, 4]))
    assert (
        "INDEX_OUT_OF_RANGE: line 2, column 13: 'I[I[i]]' takes at b = 'I[i]': index"
        in told
    )
    told = refusal("D[i,k] := M[I[i],k,k]", I=one)
    assert "'M[I[i],k,k]' has 3 labels" in told
    assert "LABEL_UNMATCHED" in refusal("D[k] := M[I[i],k]", I=one)
    assert "NAME_UNKNOWN" in refusal("D[i,k] := M[J[i],k]")
    assert "MODE_COUNT_MISMATCH" in refusal("D[i,j,k] := M[I[i,j],k]", I=one)
    assert "PROGRAM_TOO_DEEP" in refusal("D[i] := " + "M[" * 70 + "i" + "]" * 70)
    assert "SYNTAX_ERROR" in refusal("D[i,k] := Diagonal(I)[I[i],k]", I=one)
    shown = opened.explain.run("D[k,i] := M[I[i],k]", M=m, I=np.array([1, 2]))
    assert "D[k,i] = M[I[i],k]  # " in str(shown)


def test_numbers_and_indices_of_elements_agree(opened: tensord.Session) -> None:
    numbers = np.array([[0, 59, 7], [31, 5, 20]])
    found = np.unravel_index(opened.upload(numbers), (3, 4, 5))
    expected = np.unravel_index(numbers, (3, 4, 5))
    for each, wanted in zip(found, expected, strict=True):
        assert each.dtype == np.int64
        np.testing.assert_array_equal(each.numpy(), wanted)
    again = np.ravel_multi_index(found, (3, 4, 5))
    np.testing.assert_array_equal(again.numpy(), numbers)
    (single,) = xp.unravel_index(opened.upload(np.array([2])), 3)
    assert single.numpy().tolist() == [2]


def test_indices_of_one_element_stay_where_they_are(opened: tensord.Session) -> None:
    t, two, last = (opened.upload(np.asarray(each)) for each in (A, 2, -1))
    before = xp.downloads()
    results = [t[two], t[:, two], t[two, last], t[two, :, last], t[..., last, None]]
    assert xp.downloads() == before
    expected = [A[2], A[:, 2], A[2, -1], A[2, :, -1], A[..., -1, None]]
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.numpy(), wanted)

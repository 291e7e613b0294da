"""Dask computes with tensors as chunks what it does with arrays, where they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof

import tensord
import tensord.array as xp
import tensord.dask

EYE = np.eye(16)
Case = Callable[[Any, Any, Any, Any], Any]


def _overwritten(x: Any, key: Any) -> Any:
    x = x.copy()
    x[key] = 7
    return x


# Of a matrix, another one that it can be multiplied by, a vector and three modes.
CASES: dict[str, Case] = {
    "add a number": lambda x, y, v, t: x + 1,
    "add an array": lambda x, y, v, t: x + np.ones(20),
    "broadcast": lambda x, y, v, t: x * x[3] - x[:, 1:2],
    "divide": lambda x, y, v, t: x / (3 + x),
    "power": lambda x, y, v, t: 2**x,
    "exp": lambda x, y, v, t: np.exp(-x),
    "abs": lambda x, y, v, t: abs(x - 0.5),
    "compare": lambda x, y, v, t: x > x.mean(),
    "where": lambda x, y, v, t: da.where(x > 0.5, x, 0),
    "clip": lambda x, y, v, t: da.clip(x, 0.2, 0.7),
    "round": lambda x, y, v, t: x.round(1),
    "astype": lambda x, y, v, t: x.astype("f4"),
    "isclose": lambda x, y, v, t: da.isclose(x, x + 1e-9),
    "sum": lambda x, y, v, t: x.sum(),
    "sum over a mode": lambda x, y, v, t: t.sum(axis=(0, 2)),
    "mean": lambda x, y, v, t: x.mean(axis=1),
    "var": lambda x, y, v, t: x.var(axis=0),
    "std": lambda x, y, v, t: x.std(),
    "max": lambda x, y, v, t: x.max(axis=1),
    "min": lambda x, y, v, t: x.min(),
    "prod": lambda x, y, v, t: x.prod(axis=0),
    "any": lambda x, y, v, t: (x > 0.9).any(axis=0),
    "all": lambda x, y, v, t: (x > 0.01).all(),
    "argmax": lambda x, y, v, t: x.argmax(axis=0),
    "argmin of all": lambda x, y, v, t: v.argmin(),
    "argmax of a matrix": lambda x, y, v, t: x.argmax(),
    "nansum": lambda x, y, v, t: da.nansum(da.where(x > 0.5, np.nan, x), axis=0),
    "nanmean": lambda x, y, v, t: da.nanmean(da.where(x > 0.5, np.nan, x)),
    "nanmax": lambda x, y, v, t: da.nanmax(da.where(x > 0.5, np.nan, x), axis=1),
    "count_nonzero": lambda x, y, v, t: da.count_nonzero(x > 0.5),
    "average": lambda x, y, v, t: da.average(x, axis=0),
    "median": lambda x, y, v, t: da.median(x, axis=1),
    "cumsum": lambda x, y, v, t: x.cumsum(axis=0),
    "diff": lambda x, y, v, t: da.diff(x, axis=0),
    "norm": lambda x, y, v, t: da.linalg.norm(x),
    "norm of rows": lambda x, y, v, t: da.linalg.norm(x, axis=1),
    "dot": lambda x, y, v, t: x.dot(y),
    "matmul": lambda x, y, v, t: x @ y,
    "tensordot": lambda x, y, v, t: da.tensordot(t, t, axes=((1, 2), (1, 2))),
    "einsum": lambda x, y, v, t: da.einsum("ij,jk,i->ki", x, y, v),
    "outer": lambda x, y, v, t: da.outer(v, v),
    "vdot": lambda x, y, v, t: da.vdot(v, v),
    "trace": lambda x, y, v, t: da.trace(x[:16, :16]),
    "transpose": lambda x, y, v, t: t.transpose(2, 0, 1),
    "slice": lambda x, y, v, t: x[2:17:3, ::-1],
    "int and new mode": lambda x, y, v, t: t[1, :, None],
    "indices": lambda x, y, v, t: x[[1, 5, 23, 2]],
    "take": lambda x, y, v, t: da.take(x, [3, 1, 2], axis=1),
    "reshape": lambda x, y, v, t: x.reshape(4, 6, 20),
    "ravel": lambda x, y, v, t: x.ravel(),
    "rechunk": lambda x, y, v, t: x.rechunk((7, 9)),
    "concatenate": lambda x, y, v, t: da.concatenate([x, x], axis=1),
    "stack": lambda x, y, v, t: da.stack([x, x]),
    "pad": lambda x, y, v, t: da.pad(x, 1),
    "flip": lambda x, y, v, t: da.flip(x, 0),
    "roll": lambda x, y, v, t: da.roll(x, 3, axis=0),
    "repeat": lambda x, y, v, t: da.repeat(x, 2, axis=0),
    "tile": lambda x, y, v, t: da.tile(x, (2, 1)),
    "diag": lambda x, y, v, t: da.diag(v),
    "tril": lambda x, y, v, t: da.tril(x),
    "squeeze": lambda x, y, v, t: da.squeeze(x[:1]),
    "assign": lambda x, y, v, t: _overwritten(x, slice(2, 5)),
    "assign by indices": lambda x, y, v, t: _overwritten(x, [0, 9, 23]),
    "vindex": lambda x, y, v, t: x.vindex[[1, 5, 23, 2], [0, 1, 19, 3]],
    "quantile": lambda x, y, v, t: da.quantile(x.rechunk((24, 10)), [0.1, 0.5], axis=0),
    "coarsen": lambda x, y, v, t: da.coarsen(np.sum, x, {0: 2, 1: 5}),
    "cumsum in a tree": lambda x, y, v, t: da.cumsum(x, axis=0, method="blelloch"),
    "map_blocks": lambda x, y, v, t: x.map_blocks(lambda block: block * 2),
    "map_overlap": lambda x, y, v, t: x.map_overlap(
        lambda block: block[1:-1] - block[:-2], depth={0: 1}, boundary=0, trim=False
    ),
    "qr": lambda x, y, v, t: abs(da.linalg.qr(x.rechunk((8, 20)))[1]),
    "svd": lambda x, y, v, t: da.linalg.svd(x.rechunk((8, 20)))[1],
    "wide svd": lambda x, y, v, t: da.linalg.svd(x.T.rechunk((20, 8)))[1],
    "svd_compressed": lambda x, y, v, t: da.linalg.svd_compressed(x, 20, seed=1)[1],
}


@pytest.fixture(scope="module", autouse=True)
def session(address: str) -> Iterator[tensord.DeferredSession]:
    """The session of the namespace."""
    with xp.use(address) as opened, dask.config.set(scheduler="threads"):
        yield opened
    xp.use(None)


@pytest.fixture(scope="module")
def arrays() -> list[da.Array]:
    """The operands, of which the chunks are NumPy's arrays."""
    rng = np.random.default_rng(7)
    made = {(24, 20): (8, 10), (20, 16): (10, 8), (24,): (8,), (6, 8, 10): (3, 4, 5)}
    return [da.from_array(rng.random(shape), chunks) for shape, chunks in made.items()]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_chunks_stay_on_the_server(case: Case, arrays: list[da.Array]) -> None:
    expected = case(*arrays)
    resident = case(*(each.map_blocks(xp.asarray) for each in arrays))
    assert resident.dtype == expected.dtype and resident.shape == expected.shape
    before = xp.downloads()
    kept = resident.persist()
    blocks = list(kept.dask.values())
    tensors = [each for each in blocks if isinstance(each, tensord.RemoteTensor)]
    assert len(tensors) >= kept.npartitions
    assert xp.downloads() == before
    result = kept.compute()
    assert type(result) is type(expected.compute()) and result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected.compute(), rtol=1e-12, atol=1e-13)


def test_arrays_become_chunks(arrays: list[da.Array]) -> None:
    x = arrays[0].compute()
    resident = tensord.dask.from_array(x, chunks=(8, 10))
    assert resident.chunks == ((8, 8, 8), (10, 10))
    assert isinstance(resident.blocks[0, 0].persist()._meta, tensord.RemoteTensor)
    np.testing.assert_array_equal(resident.compute(), x)
    assert tensord.dask.from_array(x).dtype == x.dtype
    remote = xp.asarray(x)
    before = xp.downloads()
    views = tensord.dask.from_array(remote, chunks=(8, 10), asarray=False).persist()
    assert xp.downloads() == before
    np.testing.assert_array_equal(views.compute(), x)
    np.testing.assert_array_equal(np.asarray(resident), x)
    with_array = dask.compute(resident, arrays[0] + 1, {"a": 1})
    assert all(type(each) is np.ndarray for each in with_array[:2])
    empty = tensord.dask.from_array(np.zeros((0, 4)))
    assert empty.compute().shape == (0, 4)


DTYPES = ["?", "i1", "i4", "i8", "u1", "f2", "f4", "f8", "c8", "c16"]
TYPED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=0, dtype="i8" if x.dtype == "u1" else None),
    "mean": lambda x: x.mean(),
    "std": lambda x: x.std(axis=1),
    "max": lambda x: x.max(axis=1),
    "abs": lambda x: abs(x),
    "add": lambda x: x + x,
    "divide": lambda x: x / 2,
    "sqrt": lambda x: np.sqrt(x),
    "rint": lambda x: da.rint(x),
    "round": lambda x: x.round(),
    "count": lambda x: (x != 0).sum(axis=0),
    "transpose": lambda x: x.T,
    "concatenate": lambda x: da.concatenate([x, x]),
    "indices": lambda x: x[[3, 0]],
}


# Complex numbers have no order here.
UNTYPED = {("c8", n) for n in ("max", "rint", "round")}
UNTYPED |= {("c16", n) for _, n in UNTYPED} | {("?", "round")}  # Dask says it is bool.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TYPED)
def test_chunks_have_the_dtype_that_dask_says(name: str, dtype: str) -> None:
    if (dtype, name) in UNTYPED:
        return
    array = np.random.default_rng(3).integers(0, 2, (6, 4)).astype(dtype)
    case = TYPED[name]
    expected = case(da.from_array(array, (2, 3)))
    computed = expected.compute()
    result = case(tensord.dask.from_array(array, (2, 3)))
    there = result.compute()
    assert there.dtype == result.dtype == expected.dtype
    rtol = 64 * np.finfo(there.dtype).eps if there.dtype.kind in "fc" else 0
    np.testing.assert_allclose(there, computed, rtol=rtol, atol=rtol)


def test_results_are_arrays_whatever_dask_knows(arrays: list[da.Array]) -> None:
    x = arrays[0]
    a = x.compute()
    late = dask.delayed(xp.asarray)(a)
    unknown = [
        da.from_delayed(late, a.shape, dtype="f8"),
        x.map_blocks(xp.asarray, meta=np.empty((0, 0))),
        x.map_blocks(lambda block: xp.asarray(block - block[0] + block[0]), dtype="f8"),
    ]
    for each in unknown:
        result = each.compute()
        assert type(result) is np.ndarray
        np.testing.assert_allclose(result, a, rtol=1e-14)
    total = tensord.dask.from_array(a).sum().compute()
    assert type(total) is np.float64 and {total: 1}[total] == 1
    for each in x, x.sum():
        assert type(each.compute()) is type(each.map_blocks(xp.asarray).compute())


def test_chunks_are_stored(arrays: list[da.Array]) -> None:
    resident = arrays[0].map_blocks(xp.asarray)
    array = np.zeros(resident.shape)
    da.store(resident, array)
    np.testing.assert_array_equal(array, arrays[0].compute())


def test_errors_of_tasks_are_those_of_tensors(arrays: list[da.Array]) -> None:
    resident = arrays[0].map_blocks(xp.asarray)
    with pytest.raises(tensord.Unimplemented, match="is a mask"):
        resident[resident > 0.5].compute()
    wrong = resident.map_blocks(lambda block: block[99], dtype="f8", drop_axis=0)
    host = arrays[0].compute()[:, 0] > 0.5
    filtered = resident[host].compute()
    np.testing.assert_array_equal(filtered, arrays[0].compute()[host])
    with pytest.raises(tensord.errors.InvalidIndex, match="index 99"):
        wrong.compute()
    total = tensord.dask.from_array(np.ones((4, 4), "u1"), 2).sum(dtype="i8")
    assert total.compute() == 16


def test_arrays_are_made_on_the_server() -> None:
    with dask.config.set({"array.backend": "tensord"}):
        made = [
            da.ones((6, 4), chunks=3),
            da.zeros(5, chunks=2, dtype="f4"),
            da.full((4, 4), 2.5, chunks=2),
            da.arange(10, chunks=4),
            da.ones_like(da.ones(4)),
        ]
    for each in made:
        assert isinstance(each._meta, tensord.RemoteTensor)
    expected = [np.ones((6, 4)), np.zeros(5, "f4"), np.full((4, 4), 2.5), np.arange(10)]
    for each, array in zip(made, expected):
        computed = each.compute()
        assert computed.dtype == array.dtype
        np.testing.assert_array_equal(computed, array)
    x = da.ones((4, 4), chunks=2)
    there = x.to_backend("tensord")
    assert isinstance(there._meta, tensord.RemoteTensor)
    assert there.to_backend("tensord") is there
    back = there.to_backend("numpy")
    assert isinstance(back._meta, np.ndarray)
    np.testing.assert_array_equal(back.compute(), x.compute())


def test_equal_graphs_have_equal_names() -> None:
    a = np.random.default_rng(5).random((6, 4))
    first, second = (tensord.dask.from_array(a, chunks=3) for _ in range(2))
    assert first.name == second.name and (first + 1).name == (second + 1).name
    with dask.config.set({"array.backend": "tensord"}):
        assert da.ones(4, chunks=2).name == da.ones(4, chunks=2).name
    tensor = xp.asarray(a)
    names = {da.from_array(tensor, asarray=False).name for _ in range(2)}
    assert len(names) == 2  # It may be written between.
    for like in da.asarray, da.array, da.asanyarray:
        made = like(a, like=tensor)
        assert isinstance(made._meta, tensord.RemoteTensor)
        np.testing.assert_array_equal(made.compute(), a)


def test_dask_arrays_are_not_computed_by_the_way(arrays: list[da.Array]) -> None:
    x = arrays[0].map_blocks(xp.asarray)
    t = xp.asarray(arrays[0].compute())
    before = xp.downloads()
    for call in lambda: xp.sum(x), lambda: xp.asarray(x), lambda: xp.where(t > 0, t, x):
        with pytest.raises(TypeError, match="got a Dask array"):
            call()
    masked = np.ma.masked_greater(arrays[0].compute(), 0.5)
    with pytest.raises(TypeError, match="got a masked array"):
        tensord.dask.from_array(masked, chunks=8).compute()
    assert xp.downloads() == before


def test_percentiles_are_merged_here(arrays: list[da.Array]) -> None:
    v = arrays[2]
    for method in "linear", "lower", "nearest":
        q = [10, 50, 90]
        expected = da.percentile(v, q, method=method).compute()
        resident = da.percentile(v.map_blocks(xp.asarray), q, method=method)
        np.testing.assert_allclose(np.asarray(resident), expected, rtol=1e-12)


def test_what_is_not_computed_there_raises(arrays: list[da.Array]) -> None:
    before = xp.downloads()
    v = arrays[2].map_blocks(xp.asarray)
    with pytest.raises(TypeError, match="numpy.partition is not computed"):
        da.topk(v, 3).compute()
    with pytest.raises(TypeError, match="numpy.unique is not computed"):
        da.unique(v).compute()
    assert xp.downloads() == before


def test_tensors_leave_operations_to_dask(arrays: list[da.Array]) -> None:
    x = arrays[0]
    t = xp.asarray(x.compute())
    for result in t + x, x + t, np.add(t, x), np.multiply(x, 2) / t * t:
        assert isinstance(result, da.Array)
        np.testing.assert_allclose(result.compute(), 2 * t.numpy(), rtol=1e-14)
    assert isinstance(np.concatenate([t, x.map_blocks(xp.asarray)]), da.Array)
    assert sizeof(t) == t.nbytes
    assert sizeof(t[1:3]) == t[1:3].nbytes


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("import sys; sys.modules['dask'] = None", "pip install 'tensord[dask]'"),
        (
            "import dask; dask.config.set({'array.query-planning': True})",
            "option array.query-planning is on, wanted off",
        ),
    ],
    ids=["none", "expressions"],
)
def test_another_dask_is_asked_for(first: str, words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{first}; import tensord.dask"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert words in run.stderr

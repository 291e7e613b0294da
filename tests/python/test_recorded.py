"""Recorded sessions compute what somebody can see, once, and in order."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensord
import tensord.array as xp
from waiting import eventually

Tensor = tensord.RemoteTensor


class Observed:
    """A session, and how much the server has done for it."""

    def __init__(self, address: str) -> None:
        self.session = tensord.connect(address, recorded=True)
        self.observer = tensord.connect(address)
        self.done: dict[str, int] = {}
        self.counted()

    def counted(self) -> dict[str, int]:
        """How many operations of each kind ended since it was last asked."""
        before, self.done = self.done, {}
        for each in self.observer.stats().operations:
            self.done[each.operation] = self.done.get(each.operation, 0) + each.count
        kinds = ("contract", "elementwise", "reduce", "permute", "factorize")
        new = {kind: self.done.get(kind, 0) - before.get(kind, 0) for kind in kinds}
        return {kind: count for kind, count in new.items() if count}


@pytest.fixture
def observed(private_address: str) -> Iterator[Observed]:
    opened = Observed(private_address)
    yield opened
    opened.session.close()
    opened.observer.close()


def test_nothing_goes_before_a_value_is_wanted(observed: Observed) -> None:
    a = observed.session.upload(np.eye(3))
    b = a @ a + a
    observed.counted()
    assert (b.shape, b.dtype) == ((3, 3), np.float64)
    assert observed.counted() == {}
    assert float(b.sum()) == 6
    # The value comes with what makes it.
    assert observed.counted() == {"contract": 1, "elementwise": 1, "reduce": 1}
    np.testing.assert_array_equal(b.numpy(), 2 * np.eye(3))
    assert observed.counted() == {"permute": 1}


def test_values_come_with_what_makes_them(observed: Observed) -> None:
    session = observed.session
    a = session.upload(np.arange(6.0).reshape(2, 3))
    observed.counted()
    for _ in range(3):  # The first of a kind, and others.
        product = session.einsum("ij,ik->jk", a, a)
        np.testing.assert_array_equal(product.numpy(), a.numpy().T @ a.numpy())
        np.testing.assert_array_equal(product.numpy(), a.numpy().T @ a.numpy())
    assert observed.counted() == {"contract": 3, "permute": 15}
    product = session.einsum("ij,ik->jk", a, a)
    product[0, 0] = 100
    assert product.numpy()[0, 0] == 100
    # Neither of two equal ones has the other's.
    first, second = a + 1, a + 1
    np.testing.assert_array_equal(second.numpy(), a.numpy() + 1)
    np.testing.assert_array_equal(first.numpy(), a.numpy() + 1)
    plan = session.plan.contract(a, "ij", a, "ik", "jk")
    np.testing.assert_array_equal(plan(a, a).numpy(), a.numpy().T @ a.numpy())
    empty = session.einsum("ij,ik->jk", a[:, :0], a)
    assert empty.numpy().shape == (0, 3)
    large = session.permute(np.ones((100, 100)), "ij")
    np.testing.assert_array_equal(large.numpy(), np.ones((100, 100)))
    rounded = session.einsum("ij,ik->jk", a, a, dtype=np.float32)
    np.testing.assert_array_equal(rounded.numpy(), a.numpy().T @ a.numpy())


@pytest.mark.parametrize("extents", [(2, 2), (512, 4096)])
def test_what_is_much_goes_by_itself(
    observed: Observed, extents: tuple[int, int]
) -> None:
    a = observed.session.upload(np.ones(extents))
    observed.counted()
    before = observed.done.get("elementwise", 0)
    kept = [a + i for i in range(64 if extents == (2, 2) else 2)]

    def done() -> int:
        observed.counted()
        return observed.done.get("elementwise", 0) - before

    assert eventually(lambda: done() == len(kept))


def test_what_nobody_can_see_is_not_computed(observed: Observed) -> None:
    a = observed.session.upload(np.eye(3))
    a @ a
    product = a @ a.T
    sums = (product * 2).sum(axis=0)
    view = (a + 1)[0]
    del product, sums
    observed.counted()
    observed.session.wait()
    assert observed.counted() == {"elementwise": 1}
    np.testing.assert_array_equal(view.numpy(), [2, 1, 1])


def test_what_is_dropped_is_computed_for_what_needs_it(observed: Observed) -> None:
    a = observed.session.upload(np.full((2, 2), 2.0))
    product = a @ a
    doubled = product + product
    del product
    np.testing.assert_array_equal(doubled.numpy(), np.full((2, 2), 16))


def test_what_has_a_name_or_an_output_is_computed(observed: Observed) -> None:
    session = observed.session
    a, out = session.upload(np.ones(2)), session.create(2, np.float64, name="out")
    session.permute(a, "i", name="named", alpha=3)
    session.permute(a, "i", out=out, alpha=2)
    out = session.tensor("out")
    np.testing.assert_array_equal(out.numpy(), [2, 2])
    np.testing.assert_array_equal(session.tensor("named").numpy(), [3, 3])
    a[0] = 7
    np.testing.assert_array_equal(a.numpy(), [7, 1])


def test_one_factor_is_enough_and_the_others_leave(observed: Observed) -> None:
    session = observed.session
    a = session.upload(np.diag([3.0, 4.0]))
    values = session.factorize("ij->ik,k,kj", a, method="svd")[1]
    session.factorize("ij->ik,k,kj", a, method="svd")
    observed.counted()
    np.testing.assert_allclose(values.numpy(), [4, 3])
    assert observed.counted() == {"factorize": 1, "permute": 1}

    def tensors() -> int:
        gc.collect()
        session.link.keeper.flush()
        return len(session.list())

    assert eventually(lambda: tensors() == 2)


def test_equal_operations_are_carried_out_once(observed: Observed) -> None:
    session = observed.session
    array = np.array([[1.0, 2], [3, 4]])
    a = session.upload(array)
    first, second = a @ a, a @ a
    (q1, r1), (q2, r2) = (session.factorize("ij->ik,kj", a, method="qr") for _ in "ab")
    views = [a[0] + 1, a[0] + 1, a[1] + 1, a[0] + 2]
    first[0, 0] = 100
    observed.counted()
    np.testing.assert_array_equal(second.numpy(), array @ array)
    done = observed.counted()
    assert (done["contract"], done["factorize"], done["elementwise"]) == (1, 1, 3)
    assert first.numpy()[0, 0] == 100
    np.testing.assert_array_equal(q1.numpy(), q2.numpy())
    np.testing.assert_array_equal(r1.numpy(), r2.numpy())
    for view, wanted in zip(views, ([2, 3], [2, 3], [4, 5], [3, 4])):
        np.testing.assert_array_equal(view.numpy(), wanted)


def test_what_was_written_meanwhile_is_computed_anew(observed: Observed) -> None:
    array = np.ones((2, 2))
    a = observed.session.upload(array)
    before = a @ a
    a[0] = 5
    after = a @ a
    a.write(np.zeros((2, 2)))
    last = a @ a
    np.testing.assert_array_equal(before.numpy(), array @ array)
    array[0] = 5
    np.testing.assert_array_equal(after.numpy(), array @ array)
    np.testing.assert_array_equal(last.numpy(), np.zeros((2, 2)))


def test_arrays_are_read_when_they_are_given(observed: Observed) -> None:
    array = np.ones(4)
    first = observed.session.permute(array, "i", alpha=2)
    array[...] = 3
    second = observed.session.permute(array, "i", alpha=2)
    np.testing.assert_array_equal(first.numpy(), np.full(4, 2))
    np.testing.assert_array_equal(second.numpy(), np.full(4, 6))


def test_errors_are_of_what_is_computed_and_name_its_line(observed: Observed) -> None:
    session = observed.session
    a = session.upload(np.ones(2))

    def refused() -> Tensor:
        return session.elementwise(a, "i", a, "i", algorithm="no.such.kernel")

    refused()
    session.wait()
    result = refused()
    with pytest.raises(tensord.NotFound, match=r"the call was elementwise in .*test_rec"):
        (result + 1).numpy()
    session.wait()
    result = refused()
    with pytest.raises(tensord.NotFound):
        session.wait()


def test_a_session_that_is_closed_computes_nothing_more(observed: Observed) -> None:
    session = observed.session
    a = session.upload(np.ones(2))
    b = a + 1
    observed.counted()
    session.close()
    out = session.permute
    for act in b.numpy, lambda: a + 1, lambda: a.__iadd__(1), lambda: out(a, "i", out=a):
        with pytest.raises(tensord.FailedPrecondition, match="closed"):
            act()
    assert observed.counted() == {}


def test_leaving_a_session_computes_what_is_wanted(observed: Observed) -> None:
    with tensord.connect(observed.session.link.connection.address, recorded=True) as it:
        a = it.upload(np.ones(2))
        b = a + 1
        observed.counted()
    assert observed.counted() == {"elementwise": 1}
    assert b.shape == (2,)


def test_recorded_is_a_bool(private_address: str) -> None:
    with pytest.raises(TypeError, match="recorded"):
        tensord.connect(private_address, recorded="yes")  # type: ignore[arg-type]


def test_use_opens_one(private_address: str) -> None:
    before = xp.use(None)
    session = xp.use(private_address)
    try:
        with tensord.connect(private_address) as observer:

            def contractions() -> int:
                return sum(
                    each.count
                    for each in observer.stats().operations
                    if each.operation == "contract"
                )

            a = xp.eye(4)
            product = xp.matmul(a, a)
            begun = contractions()
            xp.matmul(product, a)
            assert contractions() == begun
            xp.flush()
            assert contractions() == begun + 1
    finally:
        assert session is not None
        session.close()
        xp.use(before)


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_numpys(private_address: str, seed: int) -> None:
    """Results are dropped, asked for and written; views are taken, and written, too."""
    rng = np.random.default_rng(seed)
    with tensord.connect(private_address, recorded=True) as session:
        pool: list[tuple[Tensor, np.ndarray]] = []

        def some() -> tuple[Tensor, np.ndarray]:
            return pool[rng.integers(len(pool))]

        for _ in range(4):
            array = rng.integers(-2, 3, (3, 3)).astype(float)
            pool.append((session.upload(array), array))
        for _ in range(250):
            (a, u), (b, v) = some(), some()
            what = rng.integers(10)
            if what < 2:
                pool.append((a @ b, np.clip(u @ v, -1e3, 1e3)))
                pool[-1] = (xp.clip(pool[-1][0], -1e3, 1e3), pool[-1][1])
            elif what < 4:
                pool.append((a + b, u + v))
            elif what == 4:
                pool.append((a.T, u.T))
            elif what == 5:
                row = rng.integers(3)
                value = b[row] * 2
                a[row] = value
                u[row] = v[row] * 2
            elif what == 6 and (u is v or not np.shares_memory(u, v)):
                session.elementwise(a, "ij", b, "ij", op="max", out=b)
                np.maximum(u, v, out=v)
            elif what == 7:
                del pool[rng.integers(len(pool) - 1)]
            elif what in (6, 8):
                np.testing.assert_array_equal(a.numpy(), u)
            else:
                pool.append((xp.abs(a[::-1]), np.abs(u[::-1])))
            del pool[:-12]
            u = v = a = b = None  # type: ignore[assignment]
        for tensor, array in pool:
            np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("is_sent", [False, True])
def test_what_is_interrupted_is_never_done_twice(
    observed: Observed, monkeypatch: pytest.MonkeyPatch, is_sent: bool
) -> None:
    session = observed.session
    t = session.upload(np.zeros(2))
    (t + 1).numpy()  # There is a stream.
    exchange: Any = type(session.link._pipeline._exchange)  # type: ignore[attr-defined]
    send = exchange.send

    def interrupted(self: Any, *requests: Any) -> None:
        monkeypatch.undo()
        if is_sent:
            send(self, *requests)
        raise KeyboardInterrupt

    monkeypatch.setattr(exchange, "send", interrupted)
    other = session.upload(np.ones(2))
    for _ in range(3):
        t += 1
    other += t
    new = t * 2
    with pytest.raises(KeyboardInterrupt):
        session.wait()
    with pytest.raises(tensord.Error, match="KeyboardInterrupt came|response"):
        new.numpy()
    if not is_sent:
        np.testing.assert_array_equal(t.numpy(), [0, 0])
        np.testing.assert_array_equal(other.numpy(), [1, 1])
        np.testing.assert_array_equal((t + 1).numpy(), [1, 1])


def test_equal_decompositions_report_what_was_kept(observed: Observed) -> None:
    session = observed.session
    a = session.upload(np.diag([5.0, 4, 1e-14]))
    options: dict[str, Any] = {"method": "svd", "cutoff": 1e-6}
    factors = [session.factorize("ij->ik,k,kj", a, **options) for _ in range(3)]
    observed.counted()
    session.wait()
    assert observed.counted()["factorize"] == 1
    for _, each, _ in factors:
        assert each.report is not None and each.report.kept_extent == 2
        assert "factorize" in each.report.kernel
    # Also where there is no room for all copies.
    for before in range(12, 64):
        kept = [a * float(i) for i in range(before)]
        for _, each, _ in [session.factorize("ij->ik,k,kj", a, **options) for _ in "ab"]:
            session.wait()
            assert each.report is not None and each.report.kept_extent == 2
        del kept


def test_many_operands_that_do_not_travel_along_fit(private_address: str) -> None:
    for transport in ("grpc", "auto"):
        with tensord.connect(
            private_address, recorded=True, quota_bytes=20 << 20, transport=transport
        ) as session:
            results = [
                session.reduce(np.full((1000, 250), i), "ij", "") for i in range(24)
            ]
            values = [float(each) for each in results]
            assert values == [250000.0 * i for i in range(24)]


def test_a_pipeline_comes_after_what_is_recorded(observed: Observed) -> None:
    session = observed.session
    a, b = session.upload(np.eye(2)), session.upload(np.full((2, 2), 10.0))
    with session.pipeline() as pipeline:
        before = a @ a
        pipeline.permute(b, "ij", out=a).result()
        after = a @ a
    np.testing.assert_array_equal(before.numpy(), np.eye(2))
    np.testing.assert_array_equal(after.numpy(), np.full((2, 2), 200))


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Has threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.timing
def test_threads_do_not_share_what_they_write(
    private_address: str, switching_often: None
) -> None:
    with (
        tensord.connect(private_address, recorded=True) as session,
        ThreadPoolExecutor(4) as pool,
    ):
        a = session.upload(np.eye(3))

        def work(number: int) -> None:
            t = session.upload(np.zeros(3))
            for i in range(40):
                product = a @ a
                product += number
                for _ in range(5):
                    t += 1
                assert (product.numpy()[0, 1], t.numpy()[0]) == (number, 5 * (i + 1))

        list(pool.map(work, range(1, 5)))


@pytest.mark.timing
def test_threads_share_a_session(private_address: str) -> None:
    with (
        tensord.connect(private_address, recorded=True) as session,
        ThreadPoolExecutor(4) as pool,
    ):
        a = session.upload(np.eye(3))

        def work(number: int) -> None:
            for i in range(60):
                product = (a * number) @ a + i
                a @ a
                if i % 7 == 0:
                    assert float(product.sum()) == 3 * number + 9 * i

        list(pool.map(work, range(1, 5)))

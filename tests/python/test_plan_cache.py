"""The plan cache shows, keeps and hands on what the server has learned."""

from __future__ import annotations

import contextlib
import datetime
import struct
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np
import pytest

import tensord
from bounds import assert_within_bound
from tensord import PlanCacheEntry, TensorSpec
from tensord.reports import PlanExchangeStats
from tensord.v1 import plan_cache_pb2
from waiting import eventually

A, B = np.ones((40, 30)), np.ones((30, 20))


@pytest.fixture
def alone(private_address: str) -> Iterator[tensord.Session]:
    """A session of the job "first" with a server that has planned nothing."""
    with tensord.connect(private_address, job="first") as opened:
        yield opened


@pytest.fixture
def snapshot(alone: tensord.Session, tmp_path: Path) -> Path:
    """A file with the plans of `work`; the server has none of them any more."""
    work(alone)
    path = tmp_path / "plans"
    alone.plan_cache.dump(path)
    alone.plan_cache.clear()
    return path


def work(session: tensord.Session) -> list[str]:
    """Runs one operation of each kind. Returns the kernels that ran."""
    results = [
        session.contract(A, "ik", B, "kj", "ij"),
        session.permute(A, "ij", "ji"),
        session.reduce(A, "ij", "i"),
        session.elementwise(A, "ij", A, "ij", "ij"),
    ]
    np.testing.assert_array_equal(results[0].numpy(), A @ B)
    np.testing.assert_array_equal(results[1].numpy(), A.T)
    np.testing.assert_array_equal(results[2].numpy(), A.sum(1))
    np.testing.assert_array_equal(results[3].numpy(), A + A)
    return [result.report.kernel for result in results]


def job_stats(session: tensord.Session, job: str) -> tuple[int, int]:
    """Hits and misses of a job."""
    (found,) = (j for j in session.plan_cache.stats().jobs if j.job == job)
    return found.hit_count, found.miss_count


def only_contraction(session: tensord.Session) -> PlanCacheEntry:
    entries = session.plan_cache.entries()
    (found,) = (entry for entry in entries if entry.problem.startswith("contraction"))
    return found


def test_a_new_server_has_learned_nothing(alone):
    stats = alone.plan_cache.stats()
    assert isinstance(stats, tensord.PlanCacheStats)
    assert (stats.entry_count, stats.hit_count, stats.miss_count) == (0, 0, 0)
    assert stats.entry_limit > 0 and stats.byte_limit > 0
    assert stats.jobs == () and stats.load_errors == {}
    assert stats.store.path == "" and stats.store.saved_at is None
    assert stats.exchange == PlanExchangeStats(
        address="",
        is_connected=False,
        sent_count=0,
        received_count=0,
        refused_count=0,
        error_count=0,
        exchanged_at=None,
        error="",
    )
    assert list(alone.plan_cache.entries()) == []


def test_jobs_profit_from_each_other(alone, private_address):
    kernels = work(alone)
    assert job_stats(alone, "first") == (0, 4)
    with tensord.connect(private_address, job="second") as second:
        assert work(second) == kernels
        assert second.contract(A, "ab", B, "bc", "ac").report.plan_cache_hit
        assert job_stats(second, "second") == (5, 0)
    stats = alone.plan_cache.stats()
    assert (stats.entry_count, stats.hit_count, stats.miss_count) == (4, 5, 4)
    assert stats.hit_count == sum(job.hit_count for job in stats.jobs)
    assert stats.planning_seconds > 0 and stats.saved_seconds > 0
    saved = {job.job: job.saved_seconds for job in stats.jobs}
    assert saved["first"] == 0 < saved["second"]
    counts = alone.stats().plan_cache
    assert (counts.hit_count, counts.miss_count) == (5, 4)


def test_plans_are_hits_when_they_run(alone):
    plan = alone.plan.contract(A, "ik", B, "kj", "ij")
    misses = alone.plan_cache.stats().miss_count
    for _ in range(3):
        assert plan(A, B).report.plan_cache_hit
    assert alone.plan_cache.stats().miss_count == misses


def test_entries_say_what_was_decided(alone):
    begun = datetime.datetime.now(datetime.timezone.utc)
    kernels = work(alone)
    for _ in range(5):
        alone.contract(A, "ik", B, "kj", "ij")
    entries = list(alone.plan_cache.entries())
    assert sorted(entry.kernel for entry in entries) == sorted(kernels)
    first = entries[0]
    assert first.hit_count == 5 and first.problem.startswith("contraction")
    assert first.kernel == kernels[0] and first.device.startswith(alone.device)
    assert (first.selection, first.source) == ("heuristic", "planned")
    assert len(first.id) == 16 and int(first.id, 16) >= 0
    assert not first.is_pinned and first.bytes > 0
    assert first.predicted_nanoseconds > 0 == first.measured_nanoseconds
    assert first.planning_seconds > 0 and first.saved_seconds > 0
    second = datetime.timedelta(seconds=1)
    assert begun - second <= first.last_used <= begun + 60 * second
    explained = alone.explain.contract(A, "ik", B, "kj", "ij")
    assert (first.problem, first.kernel) == (explained.problem, explained.kernel)


def test_entries_come_in_order_over_many_pages(alone):
    for extent in range(1, 1201):  # more than a page
        alone.explain.permute(TensorSpec((extent, 3), "float64"), "ij", "ji")
    for hits in range(1, 4):
        for extent in range(10, 10 + hits):
            alone.explain.permute(TensorSpec((extent, 3), "float64"), "ij", "ji")
    by_id = [entry.id for entry in alone.plan_cache.entries("id")]
    assert len(by_id) >= 1199 and by_id == sorted(set(by_id))
    by_hits = list(alone.plan_cache.entries(order="hits"))
    assert [entry.hit_count for entry in by_hits[:4]] == [3, 2, 1, 0]
    assert {entry.id for entry in by_hits} == set(by_id)


def test_pinned_entries_stay(alone):
    work(alone)
    cache = alone.plan_cache
    entry = only_contraction(alone)
    cache.pin(entry)
    cache.pin(entry.id)
    assert only_contraction(alone).is_pinned and cache.stats().pinned_count == 1
    assert cache.clear() == 3
    assert [kept.id for kept in cache.entries()] == [entry.id]
    assert alone.contract(A, "ik", B, "kj", "ij").report.plan_cache_hit
    assert not alone.permute(A, "ij", "ji").report.plan_cache_hit
    cache.unpin(entry)
    assert cache.stats().pinned_count == 0
    assert cache.clear() == 2
    assert list(cache.entries()) == []


def test_pinned_entries_go_when_told(alone):
    work(alone)
    for entry in alone.plan_cache.entries():
        alone.plan_cache.pin(entry)
    assert alone.plan_cache.stats().pinned_count == 4
    assert alone.plan_cache.clear(pinned_too=True) == 4
    stats = alone.plan_cache.stats()
    assert stats.entry_count == stats.pinned_count == 0
    assert stats.miss_count == 4  # statistics stay


def test_removed_entries_are_planned_anew(alone):
    work(alone)
    entry = only_contraction(alone)
    alone.plan_cache.pin(entry)
    alone.plan_cache.remove(entry)
    assert alone.plan_cache.stats().entry_count == 3
    assert not alone.contract(A, "ik", B, "kj", "ij").report.plan_cache_hit
    assert only_contraction(alone).id == entry.id


def test_entries_have_to_be_there(alone):
    cache = alone.plan_cache
    for change in cache.pin, cache.unpin, cache.remove:
        with pytest.raises(tensord.NotFound) as unknown:
            change("0123456789abcdef")
        assert unknown.value.reason == "PLAN_NOT_FOUND"
        with pytest.raises(tensord.InvalidArgument) as malformed:
            change("first")
        assert malformed.value.reason == "PLAN_ID_MALFORMED"
        with pytest.raises(TypeError, match="entry is of type int"):
            change(7)
    with pytest.raises(tensord.InvalidArgument, match="hits, id") as order:
        cache.entries("size")
    assert order.value.reason == "ORDER_UNKNOWN"
    with pytest.raises(tensord.InvalidArgument):
        cache.stats(timeout=0)


def test_tuning_shows_in_the_cache(alone, private_address):
    plan = alone.plan.contract(A, "ik", B, "kj", "ij", selection="incremental")
    plan(A, B)
    under_way = only_contraction(alone)
    assert under_way.selection == "incremental"
    assert 1 == under_way.sample_count < under_way.wanted_sample_count
    with tensord.connect(private_address, job="second") as second:
        for _ in range(under_way.wanted_sample_count - 1):
            second.contract(A, "ik", B, "kj", "ij", selection="incremental")
    tuned = only_contraction(alone)
    assert tuned.source == "measured" and tuned.measured_nanoseconds > 0
    assert plan.describe().kernel == tuned.kernel


# Snapshots.


def test_dumps_are_loaded_and_nothing_is_planned(alone, snapshot):
    assert work_misses(alone) == 4  # The cache is empty.
    alone.plan_cache.clear()
    loaded = alone.plan_cache.load(snapshot)
    assert isinstance(loaded, tensord.LoadedPlans)
    assert (loaded.entry_count, loaded.taken_count) == (4, 4)
    assert loaded.writer.startswith("tensord ")
    stats = alone.plan_cache.stats()
    assert (stats.record_count, stats.entry_count) == (4, 0)
    planning = stats.planning_seconds
    assert work_misses(alone) == 0
    stats = alone.plan_cache.stats()
    assert (stats.load_count, stats.record_count, stats.entry_count) == (4, 0, 4)
    assert stats.planning_seconds == planning and stats.load_errors == {}
    assert {entry.source for entry in alone.plan_cache.entries()} == {"loaded"}


def work_misses(session: tensord.Session) -> int:
    """Runs `work`. Returns how many of its operations were planned."""
    before = session.plan_cache.stats().miss_count
    work(session)
    return session.plan_cache.stats().miss_count - before


def test_dumps_are_loaded_elsewhere(snapshot):
    with (
        tensord.serve(threads=1) as address,
        tensord.connect(address, job="elsewhere") as session,
    ):
        assert session.plan_cache.load(str(snapshot)).taken_count == 4
        assert work_misses(session) == 0
        assert job_stats(session, "elsewhere") == (4, 0)


def test_entries_that_are_there_already_stay(alone, snapshot):
    work(alone)
    kept = only_contraction(alone)
    alone.plan_cache.pin(kept)
    loaded = alone.plan_cache.load(snapshot)
    assert (loaded.entry_count, loaded.taken_count) == (4, 0)
    assert only_contraction(alone).source == "planned"
    assert alone.plan_cache.stats().record_count == 0


def test_problems_alone_are_planned_at_once(alone, snapshot):
    loaded = alone.plan_cache.load(snapshot, problems_only=True)
    assert (loaded.entry_count, loaded.taken_count) == (4, 4)
    assert alone.plan_cache.stats().entry_count == 4
    assert {entry.source for entry in alone.plan_cache.entries()} == {"planned"}
    assert work_misses(alone) == 0


def test_tuning_is_handed_on(alone, tmp_path):
    plan = alone.plan.contract(A, "ik", B, "kj", "ij", selection="incremental")
    plan(A, B)
    for _ in range(plan.describe().wanted_sample_count - 1):
        plan(A, B)
    choice = plan.describe().kernel
    alone.plan_cache.dump(tmp_path / "tuned")
    with (
        tensord.serve(threads=1) as address,
        tensord.connect(address) as session,
    ):
        session.plan_cache.load(tmp_path / "tuned")
        for _ in range(5):
            result = session.contract(A, "ik", B, "kj", "ij", selection="incremental")
            assert result.report.kernel == choice and result.report.plan_cache_hit
            assert_within_bound(result.numpy(), A @ B, A @ B, 30)
        entry = only_contraction(session)
        assert entry.source == "loaded" and entry.measured_nanoseconds > 0


def test_a_dump_replaces_a_file_as_a_whole(alone, tmp_path):
    work(alone)
    path = tmp_path / "plans"
    path.write_bytes(b"of before")
    alone.plan_cache.dump(path)
    assert path.read_bytes() != b"of before"
    alone.plan_cache.clear()
    assert alone.plan_cache.load(path).taken_count == 4
    assert list(tmp_path.iterdir()) == [path]


def test_a_dump_that_fails_leaves_the_file(private_address, tmp_path):
    path = tmp_path / "plans"
    path.write_bytes(b"of before")
    session = tensord.connect(private_address)
    cache = session.plan_cache
    with pytest.raises(FileNotFoundError):
        cache.dump(tmp_path / "nowhere" / "plans")
    session.close()
    with pytest.raises(tensord.FailedPrecondition) as closed:
        cache.dump(path)
    assert closed.value.reason == "SESSION_CLOSED"
    assert path.read_bytes() == b"of before"
    assert list(tmp_path.iterdir()) == [path]


def refusal(session: tensord.Session, data: bytes, path: Path, **options) -> str:
    """Loads what is no snapshot. Returns the reason; nothing may have been kept."""
    path.write_bytes(data)
    with pytest.raises((tensord.InvalidArgument, tensord.DataLoss)) as failure:
        session.plan_cache.load(path, **options)
    stats = session.plan_cache.stats()
    assert stats.record_count == stats.entry_count == 0
    assert isinstance(failure.value, tensord.DataLoss) == (
        failure.value.reason == "SNAPSHOT_CORRUPT"
    )
    return failure.value.reason


@pytest.mark.parametrize("problems_only", [False, True])
def test_foreign_files_are_refused(alone, tmp_path, problems_only: bool):
    for data in b"", b"{}", bytes(range(256)) * 100, b"\x7fELF" + bytes(3 << 20):
        reason = refusal(alone, data, tmp_path / "x", problems_only=problems_only)
        assert reason == "SNAPSHOT_FOREIGN", data[:10]
    with pytest.raises(FileNotFoundError):
        alone.plan_cache.load(tmp_path / "nothing", problems_only)
    with pytest.raises(IsADirectoryError):
        alone.plan_cache.load(tmp_path)


@pytest.mark.parametrize("problems_only", [False, True])
def test_snapshots_that_are_cut_off_are_refused(
    alone, snapshot, tmp_path, problems_only: bool
):
    whole = snapshot.read_bytes()
    reasons = {
        size: refusal(
            alone, whole[:size], tmp_path / "cut", problems_only=problems_only
        )
        for size in [*range(0, len(whole), 37), len(whole) - 1]
    }
    assert reasons[0] == "SNAPSHOT_FOREIGN"
    assert all(
        reason == "SNAPSHOT_CORRUPT" for size, reason in reasons.items() if size > 64
    ), reasons
    longer = refusal(alone, whole + b"\0", tmp_path / "longer")
    assert longer == "SNAPSHOT_CORRUPT"
    assert alone.plan_cache.load(snapshot).taken_count == 4


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_snapshots_with_a_changed_byte_are_refused(alone, snapshot, tmp_path, flip):
    whole = snapshot.read_bytes()
    reasons = set()
    for position in range(0, len(whole), 11):
        changed = bytearray(whole)
        changed[position] ^= flip
        reasons.add(refusal(alone, bytes(changed), tmp_path / "changed"))
    assert "SNAPSHOT_CORRUPT" in reasons
    assert reasons <= {"SNAPSHOT_CORRUPT", "SNAPSHOT_FOREIGN", "SNAPSHOT_NEWER"}
    assert alone.plan_cache.load(snapshot).taken_count == 4


def test_snapshots_of_many_entries_travel_in_pieces(alone, tmp_path):
    for extent in range(1, 3001):
        spec = TensorSpec((extent, 3, 5), "float64")
        alone.explain.permute(spec, "ijk", "kji")
    count = alone.plan_cache.stats().entry_count
    path = tmp_path / "plans"
    alone.plan_cache.dump(path)
    assert path.stat().st_size > 100 * count
    assert alone.plan_cache.clear() == count
    # As small as pieces can be.
    requests = [
        plan_cache_pb2.LoadPlanCacheRequest(data=path.read_bytes()[i : i + 1000])
        for i in range(0, path.stat().st_size, 1000)
    ]
    taken = alone.link.connection.load_plan_cache(requests, 60).taken_count
    assert taken == count == alone.plan_cache.stats().record_count
    assert alone.plan_cache.load(path).taken_count == 0


# The file of the server.


def test_the_plan_store_outlives_the_server(tmp_path):
    store = tmp_path / "store"
    flags = {"threads": 1, "plan_store": str(store)}
    with tensord.serve(**flags) as address, tensord.connect(address) as session:
        stats = session.plan_cache.stats().store
        assert (stats.path, stats.loaded_count) == (str(store), 0)
        work(session)
    with tensord.serve(**flags) as address, tensord.connect(address) as session:
        stats = session.plan_cache.stats().store
        assert stats.loaded_count == 4 and stats.error == ""
        assert work_misses(session) == 0


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])


def device_of(store: bytes) -> bytes:
    """The device that plans are for, as keys have it: behind its length, a zero behind it."""
    begin = store.index(b"cpu:0 ")
    device = store[begin : begin + store[begin - 1]]
    assert device.isascii() and store[begin + len(device)] == 0
    return device


def on_device(store: bytes, device: bytes) -> bytes:
    """The file as it were if its plans, with keys below 128 bytes, were for another device."""
    old = device_of(store)
    count, writer_bytes = struct.unpack_from("<QI", store, 12)
    at = 24 + writer_bytes + 4
    changed = store[:at]
    for _ in range(count):
        (size,) = struct.unpack_from("<I", store, at)
        record = store[at + 8 : at + 8 + size]  # version, length of the key, key, ...
        key_end = 2 + record[1]
        key = record[2:key_end].replace(varint(len(old)) + old, varint(len(device)) + device)
        record = record[:1] + varint(len(key)) + key + record[key_end:]
        changed += struct.pack("<II", len(record), google_crc32c.value(record)) + record
        at += 8 + size
    return changed + struct.pack("<II", 0xFFFFFFFF, google_crc32c.value(changed))


def test_the_plan_store_of_an_older_server_is_used(alone, tmp_path):
    work(alone)
    alone.plan_cache.dump(tmp_path / "here")
    device = device_of((tmp_path / "here").read_bytes())
    # v1.plans: contractions, a permutation, a reduction, a product and a QR of 0.1.0.
    older = Path(__file__).with_name("v1.plans").read_bytes()
    assert on_device(older, device_of(older)) == older
    store = tmp_path / "store"
    store.write_bytes(on_device(older, device))
    a, b = np.ones((6, 5, 4)), np.ones((4, 5, 3))
    with (
        tensord.serve(threads=1, plan_store=str(store)) as address,
        tensord.connect(address) as session,
    ):
        stats = session.plan_cache.stats()
        assert stats.store.error == ""
        assert stats.store.loaded_count == stats.record_count == 6
        results = [
            session.contract(a, "ijk", b, "kjl", "il"),
            session.permute(a, "ijk", "kij"),
            session.reduce(a, "ijk", "j", op="max"),
            session.elementwise(a, "ijk", a, "ijk", "ijk", op="mul"),
        ]
        np.testing.assert_array_equal(results[0].numpy(), np.full((6, 3), 20.0))
        assert [result.report.plan_cache_hit for result in results] == [True] * 4
        stats = session.plan_cache.stats()
        assert (stats.hit_count, stats.miss_count, stats.load_errors) == (4, 0, {})


# The Redis of several servers.


@contextlib.contextmanager
def exchanging(address: str) -> Iterator[tensord.Session]:
    """A session with a server of its own, which shares plans through a Redis."""
    with (
        # time: nobody waits for it
        tensord.serve(
            threads=1, plan_exchange=address, plan_exchange_interval_seconds=0.1
        ) as server,
        tensord.connect(server) as session,
    ):
        yield session


def exchange_stats(session: tensord.Session) -> PlanExchangeStats:
    return session.plan_cache.stats().exchange


def is_exchanging(session: tensord.Session) -> bool:
    """Whether the last exchange worked."""
    stats = exchange_stats(session)
    return stats.is_connected and stats.error == "" and stats.exchanged_at is not None


@pytest.mark.timing
def test_servers_share_what_they_learn(redis):
    begun = datetime.datetime.now(datetime.timezone.utc)
    with exchanging(redis.address) as first, exchanging(redis.address) as second:
        work(first)
        assert eventually(lambda: exchange_stats(first).sent_count == 4)
        assert eventually(lambda: exchange_stats(second).received_count == 4)
        assert second.plan_cache.stats().record_count == 4
        assert work_misses(second) == 0
        entries = second.plan_cache.entries()
        assert {entry.source for entry in entries} == {"loaded"}
        assert eventually(lambda: is_exchanging(first) and is_exchanging(second))
        for session in first, second:
            stats = exchange_stats(session)
            now = datetime.datetime.now(datetime.timezone.utc)
            assert begun <= stats.exchanged_at <= now
            assert stats.address == redis.address and stats.refused_count == 0
        assert exchange_stats(first).received_count == 0
        assert exchange_stats(second).sent_count == 0


@pytest.mark.timing
def test_values_that_are_no_entries_are_refused(redis):
    with exchanging(redis.address) as session:
        # Under the names of the exchange's version 1, as change number 1000.
        assert redis.command("SET", "tensord:1:plan:0123456789abcdef", "x") == "+OK"
        assert redis.command("ZADD", "tensord:1:index", "1000", "0123456789abcdef")
        assert redis.command("SET", "tensord:1:changes", "1000") == "+OK"
        assert eventually(lambda: exchange_stats(session).refused_count == 1)
        assert eventually(lambda: is_exchanging(session))
        assert exchange_stats(session).received_count == 0
        assert session.plan_cache.stats().record_count == 0


@pytest.mark.timing
def test_a_server_does_without_its_redis(redis):
    with exchanging(redis.address) as session:
        assert eventually(lambda: is_exchanging(session))
        redis.stop()
        assert eventually(lambda: not is_exchanging(session))
        without = exchange_stats(session)
        assert not without.is_connected and without.error_count > 0
        assert redis.address in without.error
        work(session)
        later = exchange_stats(session)
        assert (later.exchanged_at, later.sent_count) == (without.exchanged_at, 0)
        redis.start()
        assert eventually(lambda: exchange_stats(session).sent_count == 4)
        assert eventually(lambda: is_exchanging(session))
        again = exchange_stats(session)
        assert again.exchanged_at > without.exchanged_at
        assert again.error_count >= later.error_count  # since the start


@pytest.mark.timing
def test_a_server_starts_without_its_redis(tmp_path):
    with exchanging(f"unix:{tmp_path}/nobody") as session:
        assert eventually(lambda: exchange_stats(session).error_count > 1)
        stats = exchange_stats(session)
        assert stats.address == f"unix:{tmp_path}/nobody"
        assert not stats.is_connected and stats.exchanged_at is None
        assert stats.address in stats.error
        work(session)

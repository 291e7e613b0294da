"""tensord-load loads a server and tells how it did."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tensord
from conftest import REPOSITORY
from waiting import eventually, listens

PROGRAM = Path(os.environ["TENSORD_SERVER"]).with_name("tensord-load")
EXAMPLE = REPOSITORY / "client/load/examples/mixed.toml"

SMALL = """
name = "small"
job = "load-test"
[[operation]]
name = "product"
kind = "contract"
weight = 3
subscripts = "ik,kj->ij"
extents = { i = 16, j = 16, k = 16 }
[[operation]]
kind = "permute"
subscripts = "ij->ji"
extents = { i = 16, j = 16 }
"""

HEAVY = """
[[operation]]
kind = "contract"
subscripts = "ik,kj->ij"
extents = { i = 512, j = 512, k = 512 }
element_type = "float64"
"""


class Loaded(NamedTuple):
    """What a run left."""

    code: int
    output: str
    errors: str
    report: dict[str, Any] | None  # of --json


@pytest.fixture
def load(address: str, tmp_path: Path):
    """Runs the program on a mix."""

    def run(mix: str | Path, *arguments: object, to: str = address) -> Loaded:
        file = mix
        if isinstance(mix, str):
            file = tmp_path / "mix.toml"
            file.write_text(mix)
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        options = ["--address", to, "--mix", file, "--json", report]
        ended = subprocess.run(
            [PROGRAM, *options, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        text = report.read_text() if report.exists() else ""
        return Loaded(
            ended.returncode,
            ended.stdout,
            ended.stderr,
            json.loads(text) if text else None,
        )

    return run


class OwnServer(NamedTuple):
    address: str
    process: subprocess.Popen[bytes]


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[OwnServer]:
    """A server that a test may stop and end."""
    address = f"unix:{tmp_path}/tensord"
    program = os.environ["TENSORD_SERVER"]
    with subprocess.Popen([program, f"--listen={address}", "--threads=1"]) as process:
        assert listens(tmp_path / "tensord")
        yield OwnServer(address, process)
        process.send_signal(signal.SIGCONT)
        process.terminate()


def check_counts(counts: dict[str, Any]) -> None:
    assert counts["intended"] == counts["sent"] + counts["not_sent"]
    assert counts["sent"] == counts["ok"] + counts["failed"] + counts["unfinished"]
    assert counts["errors"] == counts["failed"] + counts["not_sent"]
    assert sum(each["count"] for each in counts["errors_by"]) == counts["failed"]
    assert sum(counts["histogram"]["counts"]) == counts["ok"]
    quantiles = [counts[f"{name}_ms"] for name in ("p50", "p90", "p99", "p999", "max")]
    assert quantiles == sorted(quantiles)


def check(report: dict[str, Any]) -> None:
    """Counts add up, also over operations."""
    check_counts(report)
    for each in report["operations"]:
        check_counts(each)
    for key in ("intended", "sent", "ok", "failed", "not_sent", "unfinished"):
        assert report[key] == sum(each[key] for each in report["operations"])


@pytest.mark.timing
def test_an_open_loop_keeps_its_rate_and_tells_all(load, tmp_path):
    table = tmp_path / "seconds.csv"
    options = ["--rate", 200, "--seconds", 2, "--warm-up", 0.5, "--sessions", 2]
    loaded = load(SMALL, *options, "--csv", table)
    assert loaded.code == 0, loaded.errors
    report = loaded.report
    check(report)
    assert {"p50_ms", "p90_ms", "p99_ms", "goodput_per_s", "errors"} <= report.keys()
    assert report["errors"] == 0
    assert report["mix"] == "small"
    assert report["job"] == "load-test"
    assert (report["rate_per_s"], report["sessions"], report["seconds"]) == (200, 2, 2)
    # Six standard deviations of the number of arrivals.
    assert abs(report["intended"] - 400) < 6 * 400**0.5
    # What ended in that time, some of which had begun before it: so do its ends.
    assert abs(report["goodput_per_s"] * 2 - 400) < 6 * 400**0.5
    product, permute = report["operations"]
    assert (product["name"], permute["name"]) == ("product", "permute")
    assert product["intended"] > permute["intended"]
    assert "product" in loaded.output
    assert "s of 2" in loaded.errors  # progress
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) >= 2
    # The load while it warmed up is there, too.
    assert sum(int(row["ok"]) for row in rows) > report["ok"]


@pytest.mark.timing
def test_a_closed_loop_has_as_many_calls_under_way_as_callers(load):
    loaded = load(SMALL, "--closed", 3, "--seconds", 1, "--warm-up", 0, "--quiet")
    assert loaded.code == 0, loaded.errors
    check(loaded.report)
    assert loaded.errors == ""
    assert (loaded.report["closed"], loaded.report["sessions"]) == (3, 3)
    took_ms = loaded.report["mean_ms"] * loaded.report["ok"]
    # time: the calls of a caller follow each other; its last one begins in time
    assert 0 < took_ms <= 3 * (1e3 + loaded.report["max_ms"])


@pytest.mark.timing
def test_objectives_decide_the_exit_code(load):
    options = ["--rate", 100, "--seconds", 1, "--warm-up", 0.2]
    met = load(SMALL, *options, "--objective", "p99<10s,errors<1%,product:p50<5s")
    assert met.code == 0, met.errors
    assert [each["met"] for each in met.report["objectives"]] == [True] * 3
    missed = load(SMALL, *options, "--objective", "p99<1ns", "--objective", "p50<10s")
    assert missed.code == 1
    assert [each["met"] for each in missed.report["objectives"]] == [False, True]
    assert missed.report["objectives"][0]["got_ms"] > 0
    assert "objective p99<1ns MISSED" in missed.output


@pytest.mark.timing
def test_goodput_counts_what_is_fast_enough(load):
    options = ["--rate", 100, "--seconds", 1, "--warm-up", 0.2]
    loaded = load(SMALL, *options, "--objective", "p50<1ns")
    assert loaded.report["goodput_per_s"] == 0
    assert loaded.report["throughput_per_s"] > 0
    # time: what the objective says
    assert loaded.report["operations"][0]["good_within_ms"] == pytest.approx(1e-6)


@pytest.mark.timing
def test_every_kind_of_operation_runs(load):
    loaded = load(EXAMPLE, "--closed", 2, "--seconds", 2, "--warm-up", 0)
    assert loaded.code == 0, loaded.errors
    check(loaded.report)
    assert loaded.report["errors"] == 0, loaded.report["errors_by"]
    operations = {each["name"]: each for each in loaded.report["operations"]}
    assert len(operations) == 9
    assert operations["product"]["ok"] > 0
    assert "executed" in operations["product"]


@pytest.mark.timing
def test_a_load_beyond_the_servers_capacity_goes_on(load):
    options = ["--rate", 2000, "--in-flight", 4, "--seconds", 1, "--warm-up", 0]
    loaded = load(HEAVY, *options, "--objective", "p50<10s")
    check(loaded.report)
    assert loaded.report["intended"] > 1000
    assert loaded.report["not_sent"] > loaded.report["intended"] / 2
    assert "4 were under way already" in loaded.output
    # Half of the calls were not answered at all.
    assert loaded.code == 1
    assert loaded.report["objectives"][0]["got_ms"] is None


@pytest.mark.timing
def test_time_that_the_server_stands_still_counts_for_all_calls(load, own_server):
    program = [PROGRAM, "--address", own_server.address, "--rate", "100"]
    program += ["--seconds", "2", "--warm-up", "0", "--json", "-"]
    mix = Path(own_server.address.removeprefix("unix:")).with_name("small.toml")
    mix.write_text(SMALL)
    with subprocess.Popen(
        [*program, "--mix", mix], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stderr.read(1)  # after a second
        own_server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        own_server.process.send_signal(signal.SIGCONT)
        report = json.loads(running.communicate(timeout=60)[0])
    check(report)
    assert report["errors"] == 0
    # The calls of 0.8 of 2 s were kept waiting, a half of those for more than
    # 0.4 s. If each call waited for the last one, one would have been.
    assert report["p90_ms"] > 300


@pytest.mark.timing
def test_errors_are_counted_by_code(load, own_server):
    mix = Path(own_server.address.removeprefix("unix:")).with_name("small.toml")
    mix.write_text(SMALL)
    program = [PROGRAM, "--address", own_server.address, "--rate", "100", "--mix", mix]
    program += ["--seconds", "10", "--warm-up", "0", "--json", "-"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stderr.read(1)
        own_server.process.kill()
        report = json.loads(running.communicate(timeout=60)[0])
    check(report)
    assert report["failed"] > 10
    assert "UNAVAILABLE" in {each["code"] for each in report["errors_by"]}


@pytest.mark.timing
@pytest.mark.parametrize("loop", [["--rate", "100"], ["--closed", "2"]])
def test_an_interrupt_ends_it_with_results(address, tmp_path, loop):
    mix = tmp_path / "mix.toml"
    mix.write_text(SMALL)
    report = tmp_path / "report.json"
    program = [PROGRAM, "--address", address, "--mix", mix, "--json", report, *loop]
    with subprocess.Popen(
        [*program, "--seconds", "60", "--warm-up", "0"], stderr=subprocess.PIPE
    ) as running:
        assert running.stderr.read(1)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=20)
        assert running.returncode == 0
    loaded = json.loads(report.read_text())
    check(loaded)
    assert loaded["interrupted"]
    assert 0.5 < loaded["seconds"] < 20
    assert loaded["ok"] > 0


@pytest.mark.timing
def test_killed_uploads_break_off_and_leave_nothing(load, private_address):
    options = ["--rate", 20, "--seconds", 2, "--warm-up", 0]
    loaded = load(SMALL, *options, "--faults", "kill-upload=2", to=private_address)
    assert loaded.code == 0, loaded.errors
    check(loaded.report)
    killed = loaded.report["faults"]["kill_upload"]
    assert killed["begun"] > 0, killed
    with tensord.connect(private_address) as session:
        came = session.stats().uploaded_bytes
        assert 0.1 < came / (killed["begun"] * 32 * 2**20) < 0.9
        # The sessions of those clients end with their leases.
        assert eventually(lambda: session.stats().session_count == 1, 30)
        assert session.stats().tensor_count == 0


@pytest.mark.timing
def test_slow_readers_hold_what_they_asked_for_up(private_address, tmp_path):
    mix = tmp_path / "mix.toml"
    mix.write_text(SMALL)
    program = [PROGRAM, "--address", private_address, "--mix", mix, "--json", "-"]
    program += ["--rate", "20", "--seconds", "4", "--faults", "slow-reader=2"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        with tensord.connect(private_address) as session:
            assert eventually(lambda: session.stats().downloaded_bytes > 0)
            time.sleep(0.5)
            assert session.stats().downloaded_bytes < 2 * 32 * 2**20 * 0.9
        report = json.loads(running.communicate(timeout=60)[0])
    assert running.returncode == 0
    check(report)
    assert report["faults"]["slow_reader"]["begun"] == 2


WRONG = [
    (SMALL + "wieght = 3\n", "did you mean weight?"),
    (SMALL.replace("3\n", "-3\n"), "weight is -3, wanted a number of at least 0"),
    ("", "operation is missing"),
    ("job = ", "mix.toml:1: "),
    # What only the server knows.
    (SMALL.replace("ij->ji", "ij->jx"), "operation 'permute'"),
]


@pytest.mark.parametrize(("mix", "message"), WRONG, ids=[each[1] for each in WRONG])
def test_a_wrong_mix_does_not_run(load, mix: str, message: str):
    loaded = load(mix, "--rate", 10)
    assert loaded.code == 2
    assert message in loaded.errors
    assert loaded.report is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--rate R or --closed N is missing"),
        (["--rate", "0"], "'0' is not a number above 0"),
        (["--rate", "1", "--closed", "1"], "--rate excludes --closed"),
        (["--rate", "1", "--objective", "p99=1ms"], "compares nothing"),
        (["--rate", "1", "--objective", "x:p99<1ms"], "product, permute"),
        (["--rate", "1", "--faults", "fire"], "wanted kill-upload or slow-reader"),
        (["--rate", "1", "--csv", "/nowhere/x.csv"], "cannot write '/nowhere/x.csv'"),
        (["--rate", "1", "--device", "cpu:99"], "cpu:99"),
        (["--raet", "1"], "--raet"),
    ],
    ids=str,
)
def test_wrong_options_do_not_run(load, options: list[str], message: str):
    loaded = load(SMALL, *options)
    assert loaded.code == 2
    assert message in loaded.errors


def test_a_server_that_is_not_there_is_told(load):
    loaded = load(SMALL, "--rate", 10, to="localhost:1")
    assert loaded.code == 2
    assert "opening session 1 of 1" in loaded.errors

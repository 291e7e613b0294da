"""What a server bears: more work than it can do, idle sessions, uploads from everywhere.

    build/venv/bin/python tests/benchmarks/overload.py [--build build/dev] [--seconds 60]

Operations of 5 ms (one thread computes, so that the load itself has a core) at 0.8 of
what the server can do and at ten times that, each with a deadline of 50 ms: it bounds
the p99 at ten times, as what would take longer is refused or given up, so the goodput
is what tells there; host memory of 10 000 idle sessions; and resident memory while 16
clients upload by gRPC without end into a server whose limits they exceed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

import grpc
from sharing import Bench, row
from tensord.v1 import session_pb2, session_pb2_grpc

MIB = 2**20
MEMORY_MIB = 1024
HOST_MIB = 256
# What gRPC may take for connections: kConnectionMemoryBytes of rpc_server.cc.
CONNECTIONS_MIB = 256
CLIENTS = 16
UPLOADER = """
import sys, time, numpy, tensord
session = tensord.connect(sys.argv[1], transport="grpc")
array = numpy.ones(8 * 2**20)
kept, end, refused = [], time.monotonic() + float(sys.argv[2]), 0
while time.monotonic() < end:
    try:
        kept.append(session.upload(array))
    except tensord.errors.ResourceExhausted:
        refused += 1
        kept = kept[len(kept) // 2 + 1:]
print(refused)
"""


def status_kib(process: subprocess.Popen[bytes], key: str) -> int:
    """A figure of the process, e.g. VmRSS, in KiB."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(rf"{key}:\s+(\d+)", text)
    if found is None:
        raise SystemExit(f"no {key} in the process's status")
    return int(found[1])


def overload(bench: Bench) -> None:
    print("| load | p50 ms | p99 ms | a second | errors |")
    print("| --- | --- | --- | --- | --- |")
    with bench.server("--threads=1"):
        bench.run("five", "--closed=4", "--seconds=5")
        best = bench.run("five", "--closed=4", "--seconds=10")
        row("as much as it can do", best)
        rates = [factor * best["throughput_per_s"] for factor in (0.8, 10)]
        below, above = (
            bench.run("five", f"--rate={rate}", f"--seconds={bench.seconds}", "--in-flight=10000")
            for rate in rates
        )
        row("0.8 of that", below)
        row("ten times that", above)
    print(
        f"\np99 of what was accepted: {above['p99_ms'] / below['p99_ms']:.3g} of that at 0.8;"
        f" done: {above['goodput_per_s'] / best['throughput_per_s']:.3g} of the most"
    )


def idle(bench: Bench, count: int) -> None:
    with bench.server(
        f"--max-sessions={2 * count}", f"--max-sessions-per-peer={2 * count}", "--lease-seconds=3600"
    ) as server, grpc.insecure_channel(bench.address) as channel:
        service = session_pb2_grpc.SessionServiceStub(channel)

        def open_sessions(count: int) -> int:
            for number in range(count):
                service.OpenSession(session_pb2.OpenSessionRequest(job=f"job {number % 10}"))
            return status_kib(server, "VmRSS")

        before = open_sessions(count // 20)
        after = open_sessions(count)
        print(f"{count} idle sessions: {(after - before) / count:.3g} KiB each")


def flood(bench: Bench) -> None:
    with bench.server(
        f"--memory-limit-bytes={MEMORY_MIB}MiB", f"--host-limit-bytes={HOST_MIB}MiB"
    ) as server:
        idle_mib = status_kib(server, "VmRSS") / 1024
        clients = [
            subprocess.Popen(
                [sys.executable, "-c", UPLOADER, bench.address, str(bench.seconds)],
                stdout=subprocess.PIPE,
            )
            for _ in range(CLIENTS)
        ]
        refused = sum(int(client.communicate()[0]) for client in clients)
        most_mib = status_kib(server, "VmHWM") / 1024
        limits_mib = MEMORY_MIB + HOST_MIB + CONNECTIONS_MIB
        print(
            f"{CLIENTS} clients upload: at most {most_mib:.0f} MiB resident ({idle_mib:.0f} before);"
            f" limits: {MEMORY_MIB} of tensors + {HOST_MIB} of the host's + {CONNECTIONS_MIB} of"
            f" connections = {limits_mib}; {refused} uploads refused"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=Path("build/dev"))
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    bench = Bench(options.build, options.seconds)
    begun = time.monotonic()
    overload(bench)
    idle(bench, 10_000)
    flood(bench)
    print(f"{time.monotonic() - begun:.0f} s in all")


if __name__ == "__main__":
    main()

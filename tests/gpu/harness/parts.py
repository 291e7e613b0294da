"""How each part of a run is carried out: programs of the pack, with a limit of time."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness import raw

NO_DEVICE = 77  # exit status of the benchmarks
SERVER_START_SECONDS = 30
GRACE_SECONDS = 45  # for a case that has begun when its part's time is up
SANITIZERS = ("memcheck", "racecheck", "synccheck")
KERNEL_LINE = re.compile(r"^(\S+): (\d+) runs, (\d+) declined, worst error (\S+) of the bound$")


@dataclass
class Outcome:
    outcome: str  # "passed", "FAILED" or "SKIPPED"
    note: str = ""


class Bench:
    """The pack that is run, and where its rows and texts go."""

    def __init__(self, pack: pathlib.Path, data: pathlib.Path, out: pathlib.Path):
        self.pack, self.data = pack, data
        self.raw_path = out / "raw.jsonl"
        self.log_path = out / "log.txt"
        self.rows: list[dict] = []
        self._raw = open(self.raw_path, "w")
        self._log = open(self.log_path, "w")

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()
        self._log.close()

    def program(self, name: str) -> str:
        return str(self.pack / "bin" / name)

    def has(self, name: str) -> bool:
        return os.access(self.program(name), os.X_OK)

    def add(self, row: dict) -> None:
        self.rows.append(row)
        self._raw.write(json.dumps(row) + "\n")
        self._raw.flush()

    def log(self, text: str) -> None:
        self._log.write(text.rstrip() + "\n")
        self._log.flush()


def last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""


@dataclass
class Ended:
    """A program that has ended, or was ended when its time was up."""

    returncode: int
    output: str
    errors: str
    expired: bool


def run_limited(command: list[str], seconds: float, on_line: Callable[[str], None] = lambda line: None) -> Ended:
    """Runs a program and calls `on_line` with each line as it is printed."""
    expired = threading.Event()
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace", start_new_session=True
        ) as process,
    ):

        def end() -> None:
            expired.set()
            # With the processes that it started: a server, or what a sanitizer looks at.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(max(seconds, 0), end)
        timer.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            on_line(line)
        process.wait()
        timer.cancel()
        errors.seek(0)
        return Ended(process.returncode, "".join(lines), errors.read(), expired.is_set())


def run_rows(bench: Bench, command: list[str], seconds: float) -> Outcome:
    """Runs a program that prints rows and stops by itself after `seconds`."""
    bench.log("$ " + " ".join(command))
    reasons: list[str] = []

    def add(line: str) -> None:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            bench.log(f"not a row: {line}")
            return
        bench.add(row)
        if set(row) == {"part", "skipped"}:
            reasons.append(row["skipped"])

    done = run_limited(command, seconds + GRACE_SECONDS, add)
    bench.log(done.errors)
    if done.expired:
        return Outcome("FAILED", f"killed {GRACE_SECONDS} s after its time was up")
    if done.returncode == NO_DEVICE:
        return Outcome("SKIPPED", last_line("\n".join(reasons)))
    if done.returncode != 0:
        return Outcome("FAILED", f"exit status {done.returncode}: {last_line(done.errors)}")
    return Outcome("passed")


def bench_part(part: str) -> Callable[[Bench, float], Outcome]:
    def run(bench: Bench, seconds: float) -> Outcome:
        outcome = run_rows(
            bench, [bench.program("gpu_bench"), part, f"--data={bench.data}", f"--seconds={seconds:.0f}"], seconds
        )
        wrong = len(list(raw.wrong_results(raw.of_part(bench.rows, part))))
        return Outcome("FAILED", f"{wrong} wrong results") if wrong else outcome

    return run


def server_part(part: str) -> Callable[[Bench, float], Outcome]:
    def run(bench: Bench, seconds: float) -> Outcome:
        if not bench.has("gpu_server_bench"):
            return Outcome("SKIPPED", "the pack has no gpu_server_bench")
        program, server = bench.program("gpu_server_bench"), bench.program("tensord")
        return run_rows(bench, [program, part, f"--server={server}", f"--seconds={seconds:.0f}"], seconds)

    return run


def example(bench: Bench, seconds: float, device: str = "cuda:0") -> Outcome:
    """The quickstart's job, from a client through the packed server: the MP2 correlation energy of water."""
    if not (bench.has("tensord_example_mp2") and bench.has("tensord")):
        return Outcome("SKIPPED", "the pack has no server or no example")
    with tempfile.TemporaryDirectory() as folder:
        socket = pathlib.Path(folder) / "tensord.sock"
        with open(pathlib.Path(folder) / "log.txt", "w+") as log:
            command = [bench.program("tensord"), f"--listen=unix:{socket}", f"--devices={device}"]
            server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            try:
                end = time.monotonic() + SERVER_START_SECONDS
                while not socket.exists() and server.poll() is None and time.monotonic() < end:
                    time.sleep(0.05)
                done = run_limited(
                    [bench.program("tensord_example_mp2"), str(bench.data / "water-ccpvdz"), f"unix:{socket}"],
                    seconds + GRACE_SECONDS,
                )
            finally:
                server.terminate()
                server.wait()
            log.seek(0)
            bench.log(f"== example\n{done.output}{done.errors}{log.read()}")
    steps = [line.split() for line in done.output.splitlines() if line.endswith(" ms")]
    for words in steps:
        bench.add({"part": "example", "step": " ".join(words[:-2]), "ns": 1e6 * float(words[-2])})
    if done.expired or done.returncode != 0:
        return Outcome("FAILED", last_line(done.errors) or last_line(done.output))
    return Outcome("passed", " ".join(last_line(done.output).split()))


def peers(bench: Bench, seconds: float) -> Outcome:
    script = pathlib.Path(__file__).parent / "peers.py"
    outcome = run_rows(
        bench, [sys.executable, str(script), f"--data={bench.data}", f"--seconds={seconds:.0f}"], seconds
    )
    rows = [row for row in bench.rows if row["part"] == "peers"]
    missing = [row["peer"] for row in rows if "skipped" in row]
    if outcome.outcome != "passed" or not missing:
        return outcome
    return Outcome("passed" if any("ns" in row for row in rows) else "SKIPPED", f"without {', '.join(missing)}")


def list_tests(program: str, target: str) -> list[str]:
    """Names of the conformance tests on `target`, with the one that asks for the device first."""
    output = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    suite, found = "", []
    for line in output.splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
        else:
            test = suite + line.split("#")[0].strip()
            if suite == "GpuDeviceTest." or test.endswith("/" + target):
                found.append(test)
    return sorted(found, key=lambda test: not test.startswith("GpuDeviceTest."))


def run_test(bench: Bench, prefix: list[str], test: str, end: float) -> dict:
    """One test in a process of its own: an error of CUDA that stays ends with it."""
    if time.monotonic() >= end:
        return {"outcome": "left out"}
    command = [*prefix, bench.program("gpu_conformance_test"), f"--gtest_filter={test}", "--gtest_color=no"]
    start = time.monotonic()
    done = run_limited(command, end - start + GRACE_SECONDS)
    seconds = time.monotonic() - start
    text = done.output + done.errors
    if done.expired:
        return {"outcome": "no end", "detail": "did not end in time", "seconds": seconds, "output": text}
    outcome = "passed" if done.returncode == 0 else "failed"
    if outcome == "passed" and "[  SKIPPED ]" in done.output:
        outcome = "skipped"
    # What a test or a sanitizer says first; a sanitizer names itself before.
    reasons = [
        line
        for line in text.splitlines()
        if "Failure" in line or (line.startswith("========= ") and "COMPUTE-SANITIZER" not in line)
    ]
    return {"outcome": outcome, "detail": (reasons or [last_line(text)])[0][:300], "seconds": seconds, "output": text}


def run_tests(bench: Bench, part: str, jobs: list[tuple[str, list[str], str]], seconds: float, workers: int) -> Outcome:
    """Runs jobs of (tool, command prefix, test), some at a time. Under a tool a test that does not end is just slow."""
    end = time.monotonic() + seconds
    results: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(run_test, bench, prefix, test, end): (tool, test) for tool, prefix, test in jobs}
        for future in concurrent.futures.as_completed(futures):
            tool, test = futures[future]
            result = future.result()
            if result["outcome"] == "no end":
                result["outcome"] = "left out" if part == "sanitizer" else "failed"
            output = result.pop("output", "")
            bench.log(f"== {part} {tool} {test}: {result['outcome']}\n{output}")
            for match in filter(None, map(KERNEL_LINE.match, output.splitlines())):
                bench.add(
                    {
                        "part": part,
                        "kernel": match[1],
                        "runs": int(match[2]),
                        "declined": int(match[3]),
                        "worst_error": float(match[4]),
                    }
                )
            bench.add({"part": part, "tool": tool, "test": test, **result})
            results.append(result["outcome"])
    left_out = results.count("left out")
    bench.add({"part": part, "cases_done": len(results) - left_out, "cases_left_out": left_out})
    failed = results.count("failed")
    if failed:
        return Outcome("FAILED", f"{failed} of {len(results) - left_out} tests")
    if "passed" not in results:
        return Outcome("SKIPPED", f"{results.count('skipped')} tests were skipped, {left_out} left out")
    return Outcome("passed", f"{results.count('passed')} tests")


def conformance(bench: Bench, seconds: float) -> Outcome:
    tests = list_tests(bench.program("gpu_conformance_test"), "Full")
    workers = max(1, min(6, (os.cpu_count() or 1) // 2))
    return run_tests(bench, "conformance", [("test", [], test) for test in tests], seconds, workers)


def find_sanitizer() -> str | None:
    for folder in (None, "/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"):
        found = shutil.which("compute-sanitizer", path=folder)
        if found:
            return found
    return None


def sanitizer(bench: Bench, seconds: float) -> Outcome:
    tool = find_sanitizer()
    if tool is None:
        return Outcome("SKIPPED", "no compute-sanitizer on the PATH or below /usr/local/cuda")
    tests = [test for test in list_tests(bench.program("gpu_conformance_test"), "Brief") if test.endswith("/Brief")]
    # Random problems are few in brief; the other tests go through many, and come when there is time left.
    tests.sort(key=lambda test: "Random" not in test)
    jobs = [(name, [tool, "--tool", name, "--error-exitcode", "9"], test) for test in tests for name in SANITIZERS]
    return run_tests(bench, "sanitizer", jobs, seconds, max(1, min(4, (os.cpu_count() or 1) // 2)))


@dataclass
class Part:
    run: Callable[[Bench, float], Outcome]
    weight: float  # of the time that is left, against the parts that follow


# In the order in which they run: what is right comes before what is fast.
PARTS = {
    "conformance": Part(conformance, 5),
    "example": Part(example, 0.5),
    "model": Part(bench_part("model"), 1),
    "permutation": Part(bench_part("permutation"), 6),
    "elementwise": Part(bench_part("elementwise"), 1),
    "reduction": Part(bench_part("reduction"), 1),
    "contraction": Part(bench_part("contraction"), 6),
    "overhead": Part(bench_part("overhead"), 0.5),
    "program": Part(server_part("program"), 0.5),
    "memory": Part(bench_part("memory"), 1),
    "transfer": Part(server_part("transfer"), 1),
    "peers": Part(peers, 6),
    "sanitizer": Part(sanitizer, 5),
}

"""Two jobs on two servers that share their plans: what the second has of the first.

Each job is a process that executes the same contractions again and again, with
incremental selection. The plans travel through a Redis.
"""

import argparse
import concurrent.futures
import contextlib
import multiprocessing
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple
import numpy as np
import tensord

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise SystemExit("two_jobs.py draws: pip install 'matplotlib>=3.7'") from error

CONTRACTIONS = {
    "MP2 energy, Coulomb": ("iajb,iajb->", "float64"),
    "MP2 energy, exchange": ("iajb,ibja->", "float64"),
    "CCSD pair energies": ("ijab,ijab->ij", "float64"),
    "exchange matrix": ("prqs,rs->pq", "float64"),
    "hypercontraction": ("px,qx->pqx", "float64"),
    "attention scores": ("nhd,nkhd->nhk", "float32"),
}
EXTENTS = dict(i=20, j=20, a=60, b=60, p=30, q=30, r=30, s=30, x=300)
EXTENTS |= dict(n=8, h=12, d=64, k=256)
COLOURS = {"first": "tab:orange", "second": "tab:blue"}  # (job)
MARKERS = "so^Dv<>PXph*"  # (kernel)
PATIENCE_SECONDS = 20


class Job(NamedTuple):
    lookups: tensord.reports.PlanCacheJobStats
    choices: list[str]  # (contraction)
    kernels: np.ndarray  # (contraction, execution), as are those below
    milliseconds: np.ndarray
    is_tuning: np.ndarray


@contextlib.contextmanager
def private_redis():
    if not (program := shutil.which("redis-server")):
        hint = "apt-get install redis-server, or say with --redis where one runs"
        raise SystemExit(f"there is no redis-server on the PATH: {hint}")
    with tempfile.TemporaryDirectory(prefix="two-jobs-") as folder:
        socket, log = pathlib.Path(folder, "socket"), pathlib.Path(folder, "log")
        flags = f"--port 0 --unixsocket {socket} --logfile {log} --dir {folder} --save"
        process = subprocess.Popen([program, *flags.split(), ""])
        try:
            end = time.monotonic() + PATIENCE_SECONDS
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"redis-server does not start:\n{log.read_text()}")
                time.sleep(0.01)
            yield f"unix:{socket}"
        finally:
            process.terminate()
            process.wait()


def wait_for_exchange(cache: tensord.PlanCache) -> None:
    """Returns when an exchange of plans has ended that began after the call."""
    end = time.monotonic() + PATIENCE_SECONDS
    ends = [cache.stats().exchange.exchanged_at]
    while len(ends) < 3:  # The one that ends next may have begun before the call.
        exchange = cache.stats().exchange
        if exchange.error or time.monotonic() > end:
            raise SystemExit(exchange.error or "no exchange of plans ends in time")
        if exchange.exchanged_at != ends[-1]:
            ends.append(exchange.exchanged_at)
        time.sleep(0.02)


def run_job(address: str, name: str, executions: int, scale: float) -> Job:
    rng, work = np.random.default_rng(), []
    curves = [np.zeros((len(CONTRACTIONS), executions), code) for code in "Od?"]
    kernels, milliseconds, is_tuning = curves
    with tensord.connect(address, job=name) as session:
        for subscripts, dtype in CONTRACTIONS.values():
            a, b = (
                rng.random([max(1, round(scale * EXTENTS[mode])) for mode in modes])
                for modes in subscripts.split("->")[0].split(",")
            )
            a, b = session.upload(a.astype(dtype)), session.upload(b.astype(dtype))
            plan = session.plan.einsum(subscripts, a, b, selection="incremental")
            work.append((plan, a, b))
        for n in range(executions):
            for i, (plan, a, b) in enumerate(work):
                sample_count = plan.describe().sample_count
                begun = time.perf_counter()
                kernels[i, n] = plan(a, b).report.kernel
                milliseconds[i, n] = 1e3 * (time.perf_counter() - begun)
                is_tuning[i, n] = plan.describe().sample_count > sample_count
        jobs = {job.job: job for job in session.plan_cache.stats().jobs}
        return Job(jobs[name], [plan.describe().kernel for plan, *_ in work], *curves)


def print_table(rows: list[list]) -> None:
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows)]
    for head, *row in rows:
        cells = (str(cell).rjust(width) for cell, width in zip(row, widths[1:]))
        print(head.ljust(widths[0]), *cells, sep="  ")
    print()


def report(jobs: dict[str, Job], executions: int) -> None:
    counts = {f"first {min(10, executions)}": 10, f"all {executions}": executions}
    times = [
        [job.milliseconds[:, :count].sum() for count in counts.values()]
        for job in jobs.values()
    ]
    table = [["job", "hits", "misses", "hit rate", "planning saved", "tuning", *counts]]
    for (name, job), row in zip(jobs.items(), times):
        hits, misses = job.lookups.hit_count, job.lookups.miss_count
        row = [f"{1e3 * job.lookups.saved_seconds:.2f} ms", job.is_tuning.sum()] + [
            f"{time:.1f} ms" for time in row
        ]
        table.append([name, hits, misses, f"{hits / (hits + misses):.1%}", *row])
    print_table(table)
    table = [["contraction", "subscripts", *(f"{name} job chose" for name in jobs)]]
    for i, (name, (subscripts, _)) in enumerate(CONTRACTIONS.items()):
        table.append([name, subscripts, *(job.choices[i] for job in jobs.values())])
    print_table(table)
    for title, first, second in zip(counts, *times):
        verdict = "faster" if second < first else "not faster"
        print(f"{title}: second job {verdict}, {first / second:.2f} times the speed")


def draw(jobs: dict[str, Job], png: pathlib.Path) -> None:
    figure = Figure(figsize=(11, 7), layout="constrained")
    grid = figure.subplots(2, 3, sharex=True, sharey=True).flat
    kernels = sorted({k for job in jobs.values() for k in job.kernels[job.is_tuning]})
    for i, (axes, (contraction, about)) in enumerate(zip(grid, CONTRACTIONS.items())):
        axes.set(title=f"{contraction}\n{'  '.join(about)}", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
        for name, job in jobs.items():
            times, color = job.milliseconds[i], COLOURS[name]
            number = 1 + np.arange(times.size)
            axes.plot(number, times, color=color, label=f"{name} job")
            for kernel, marker in zip(kernels, MARKERS):
                tries = job.is_tuning[i] & (job.kernels[i] == kernel)
                axes.scatter(number[tries], times[tries], color=color, marker=marker)
    for kernel, marker in zip(kernels, MARKERS):
        axes.scatter([], [], color="gray", marker=marker, label=f"tuning: {kernel}")
    legend = axes.get_legend_handles_labels()
    figure.legend(*legend, loc="outside upper center", ncols=4)
    figure.supxlabel("execution")
    figure.supylabel("time that the client sees, ms")
    figure.savefig(png, dpi=120)


def end(signal_number: int, _: object) -> None:
    """Ends what was started."""
    for job in multiprocessing.active_children():
        job.terminate()
    sys.exit(128 + signal_number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redis", help="HOST:PORT or unix:PATH; else one is started")
    parser.add_argument("--png", type=pathlib.Path, default="two_jobs.png")
    parser.add_argument("--executions", type=int, default=40, help="per contraction")
    parser.add_argument("--scale", type=float, default=1, help="factor of all extents")
    args = parser.parse_args()
    if not (args.executions > 0 and 0 < args.scale < 100):
        parser.error("--executions is to be at least 1, --scale above 0 and below 100")
    if args.png.suffix != ".png" or not args.png.parent.is_dir():
        parser.error(f"--png {args.png} is no .png file in a folder that exists")
    signal.signal(signal.SIGTERM, end)
    jobs, spawn = {}, multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        redis = args.redis or stack.enter_context(private_redis())
        flags = {"plan_exchange": redis, "plan_exchange_interval_seconds": 0.1}
        servers = [stack.enter_context(tensord.serve(**flags)) for _ in COLOURS]
        for name, address in zip(COLOURS, servers):
            cache = stack.enter_context(tensord.connect(address)).plan_cache
            wait_for_exchange(cache)
            task = run_job, address, name, args.executions, args.scale
            with concurrent.futures.ProcessPoolExecutor(1, spawn) as process:
                jobs[name] = process.submit(*task).result()
            wait_for_exchange(cache)
    report(jobs, args.executions)
    draw(jobs, args.png)
    print(f"drawn: {args.png}")
    first, second = jobs.values()
    if not first.is_tuning.any():
        print("the first job had nothing to tune: this Redis had the plans before")
    misses, tuning = second.lookups.miss_count, second.is_tuning.sum()
    if misses or tuning:
        ended = "still going on" if first.is_tuning[:, -1].any() else "over"
        raise SystemExit(
            f"the second job did not start warm: {misses} misses, {tuning} executions "
            f"for tuning; tuning by the first job was {ended}"
        )


if __name__ == "__main__":
    main()

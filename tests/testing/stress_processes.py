"""What tests/stress does to a machine and to processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BUSY_LOOPS = 4
STOP_SECONDS = 0.3
WRITTEN_BYTES = 256 << 20

WRITER = f"""
import os, sys
block = os.urandom(1 << 20)
while True:
    with open(sys.argv[1], "wb", buffering=0) as file:
        for _ in range({WRITTEN_BYTES} >> 20):
            file.write(block)
            os.fsync(file)
"""


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def load(cores: list[int], output: Path) -> Iterator[None]:
    """Busy loops on the cores, and a writer."""

    def begin() -> None:
        die_with_parent()
        os.sched_setaffinity(0, cores)

    written = output / "written"
    commands = [[sys.executable, "-c", "while True: pass"]] * BUSY_LOOPS
    commands.append([sys.executable, "-c", WRITER, str(written)])
    processes = [
        subprocess.Popen(words, preexec_fn=begin, start_new_session=True) for words in commands
    ]
    try:
        yield
        if any(process.poll() is not None for process in processes):
            sys.exit("what loads the machine has ended")
    finally:
        for process in processes:
            process.kill()
            process.wait()
        written.unlink(missing_ok=True)


def processes_of(mark: str) -> dict[int, str]:
    """States by id of the processes with a mark in their environment, whoever their parent is."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if mark.encode() in environment_of(folder):
                found[int(folder.name)] = state_of(folder)
    return {process: state for process, state in found.items() if state not in "ZX"}


def environment_of(folder: Path) -> list[bytes]:
    """The variables of a process, also of one that is just becoming another program.

    That one has no environment for a moment, at work or waiting for a disk.
    """
    for _ in range(5000):
        state = state_of(folder)
        if (text := (folder / "environ").read_bytes()) or state not in "RD":
            break
        os.readlink(folder / "exe")  # an error for the kernel's own
        time.sleep(0.001)
    return text.split(b"\0")


def state_of(folder: Path) -> str:
    return (folder / "stat").read_text().rpartition(")")[2].split()[0]


def stand_still(mark: str, root: int, stops_others: bool, chance: random.Random) -> None:
    """Stops all processes of a run, or one that it has started, for a while.

    Those that stand still already are their test's own business.
    """
    stopped = []

    def stop(process: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
            stopped.append(process)

    others = {each: state for each, state in processes_of(mark).items() if each != root}
    if others and not stops_others and chance.random() < 0.5:
        process = chance.choice(sorted(others))
        if others[process] not in "Tt":
            stop(process)
    else:
        stop(root)  # and then it cannot stop another
        for process, state in processes_of(mark).items():
            if process != root and state not in "Tt":
                stop(process)
    time.sleep(STOP_SECONDS)
    for process in reversed(stopped):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def kill_all(mark: str) -> None:
    """Ends the processes of a run, and those that they start meanwhile."""
    while left := processes_of(mark):
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)

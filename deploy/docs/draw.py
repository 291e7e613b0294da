"""Draws what tensord is, how it is built, and the life of a request.

    python3 deploy/docs/draw.py [FOLDER]      # deploy/docs/pictures unless given
"""

from __future__ import annotations

import sys
from pathlib import Path

from drawing import Drawing

PICTURES = Path(__file__).resolve().parent / "pictures"


def overview() -> Drawing:
    """Who talks to a server, and what it owns."""
    picture = Drawing(860, 330, "clients, a server, its devices")
    clients = (
        ("Python", "NumPy in and out"),
        ("C++", "handles, RAII"),
        ("tensorctl", ".npy files"),
        ("any other", "stubs of the protos"),
    )
    for number, (name, what) in enumerate(clients):
        y = 24 + 74 * number
        picture.box(20, y, 160, 56, name, what, kind="client")
        picture.arrow(180, y + 28, 318, 165, both=True)
    picture.text(250, 60, "gRPC", anchor="middle", is_bold=True)
    picture.bar(320, 24, 320, 278, "server")
    picture.text(480, 48, "tensord: one process of a node", anchor="middle", is_bold=True)
    picture.box(340, 64, 280, 46, "sessions", "tensors and views stay here, by name")
    picture.box(340, 120, 280, 46, "programs", "order of contractions, memory, shared parts")
    picture.box(340, 176, 280, 46, "plan cache", "which kernel; decided once for all jobs")
    picture.box(340, 232, 280, 46, "queues", "fair by work; jobs give way and stop")
    for number, (name, what) in enumerate(
        (("cuda:0", "memory, streams"), ("cuda:1", "memory, streams"), ("cpu:0", "threads, SIMD"))
    ):
        y = 40 + 90 * number
        picture.box(700, y, 140, 66, name, what, kind="device")
        picture.arrow(640, y + 33, 698, y + 33)
    return picture


def house() -> Drawing:
    """Folders, and which of them includes which."""
    picture = Drawing(880, 600, "the folders of tensord and what includes what")
    picture.box(30, 24, 820, 44, "client", "cpp   python   cli   load", kind="client")
    picture.box(30, 92, 820, 44, "proto", "tensord.v1, the only contract; messages of transfers", kind="client")
    picture.arrow(440, 68, 440, 90)
    picture.bar(30, 160, 820, 208, "server")
    picture.text(46, 182, "server", is_bold=True)
    picture.box(46, 194, 250, 60, "rpc", "one door for all calls, then handlers", "(coroutines over completion queues)")
    picture.box(326, 194, 230, 60, "execution", "a request becomes a run of steps", "prepared plans and programs")
    picture.box(586, 194, 248, 60, "session", "leases, quotas, tensors, views")
    observed = "metrics, probes, page; logs, traces;", "certificates, tokens, tenants"
    picture.box(46, 290, 250, 60, "http, telemetry, identity", *observed)
    picture.box(326, 290, 230, 60, "process, config", "options, files that change,", "start, drain")
    picture.box(586, 290, 248, 60, "engine", "devices: memory, queue, plan cache", "plan store and exchange")
    picture.arrow(171, 136, 171, 192)
    picture.arrow(296, 224, 324, 224)
    picture.arrow(556, 224, 584, 224)
    picture.arrow(710, 254, 710, 288)
    picture.bar(30, 392, 820, 186, "core")
    picture.text(46, 414, "core: no gRPC, no logging, no environment", is_bold=True)
    picture.box(46, 428, 180, 60, "notation", "statements, einsum, NCON", "-> trees -> steps")
    picture.box(246, 428, 180, 60, "executor", "views against a plan,", "workspace, launch")
    picture.box(446, 428, 180, 60, "plan", "planner, cache, tuning,", "snapshots")
    kernels = "cpu, cuda: lists of kernels,", "the reference kernel last"
    picture.box(646, 428, 188, 60, "backend", *kernels, kind="device")
    picture.box(46, 510, 180, 50, "ops", "what was asked: Desc")
    picture.box(246, 510, 380, 50, "problem", "its canonical form: modes dropped, fused, sorted")
    picture.box(646, 510, 188, 50, "tensor, memory, device")
    picture.arrow(426, 458, 444, 458)
    picture.arrow(626, 458, 644, 458)
    picture.arrow(136, 488, 136, 508)
    picture.arrow(690, 488, 622, 508)
    picture.arrow(246, 535, 228, 535)
    picture.arrow(740, 488, 740, 508)
    picture.arrow(710, 368, 710, 390)
    return picture


REQUEST = (
    (0, 1, "Contract(a, b), deadline, token"),
    (1, 1, "who asks, id, limits, count"),
    (1, 2, "message -> Desc"),
    (2, 3, "find a, b"),
    (2, 2, "validate; announce reads and writes"),
    (2, 4, "Problem, canonical"),
    (4, 4, "plan cache: hit, or planner"),
    (2, 5, "admit: predicted time, memory, quota"),
    (5, 5, "queue: least device time goes first"),
    (5, 6, "memory; a kernel on a stream"),
    (6, 5, "done"),
    (5, 2, "end uses; what was measured"),
    (2, 1, "result, report"),
    (1, 0, "reply, x-request-id"),
)


def request() -> Drawing:
    """What happens between a call and its answer."""
    names = ("client", "rpc", "execution", "session", "plan", "engine", "device")
    kinds = ("client", "server", "server", "server", "core", "server", "device")
    column, top, step = 150, 78, 36
    picture = Drawing(170 + column * len(names), top + step * len(REQUEST) + 20, "the life of a request")
    middles = [30 + column * number + column / 2 for number in range(len(names))]
    for middle, name, kind in zip(middles, names, kinds, strict=True):
        picture.box(middle - 55, 16, 110, 34, name, kind=kind)
        picture.line(middle, 50, middle, top + step * len(REQUEST))
    for number, (here, there, words) in enumerate(REQUEST):
        y = top + step * number
        label = f"{number + 1}  {words}"
        if here == there:
            picture.bar(middles[here] - 5, y - 14, 10, 22, kinds[here])
            picture.text(middles[here] + 10, y + 1, label, size=12)
        else:
            forth = 2 if here < there else -2
            picture.arrow(middles[here] + forth, y, middles[there] - forth, y)
            picture.text(min(middles[here], middles[there]) + 10, y - 6, label, size=12)
    return picture


def main(folder: Path = PICTURES) -> None:
    folder.mkdir(exist_ok=True)
    for draw in (overview, house, request):
        draw().save(folder / f"{draw.__name__}.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

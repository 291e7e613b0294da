"""An image's root file system, run as a container runtime would: read-only, as nobody in particular, with no rights."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from waiting import eventually

USER = 65532
# Namespace of its own; devices, /proc and folders that volumes would be. The root is read-only from then on.
START = """
mount --bind "$root" "$root"
mount --make-rprivate "$root"
mount -t proc proc "$root/proc"
for device in null zero urandom; do touch "$root/dev/$device"; mount --bind /dev/$device "$root/dev/$device"; done
for volume in run/tensord var/lib/tensord tmp; do mount --bind "$volumes/$volume" "$root/$volume"; done
mount -o remount,ro,bind "$root"
[ -z "$group" ] || echo $$ >"$group/cgroup.procs"
exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" /usr/bin/tensord "$@"
"""


def is_mounted(folder: str) -> bool:
    """Whether something is mounted right there, as this process sees it."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4] == folder for line in mounts)


class Container:
    """A server that runs from construction to the end of the with block."""

    def __init__(self, root: Path, volumes: Path, *flags: str, group: str = "") -> None:
        for folder in ("proc", "dev", "run/tensord", "var/lib/tensord"):
            (root / folder).mkdir(exist_ok=True)
        for folder in ("run/tensord", "var/lib/tensord", "tmp"):
            (volumes / folder).mkdir(parents=True)
            os.chown(volumes / folder, USER, USER)
        self.address = f"unix:{volumes}/run/tensord/socket"
        self._volumes = volumes
        self._log = volumes / "log"
        environment = {
            "PATH": os.environ["PATH"],
            "TENSORD_CONFIG": "/etc/tensord/tensord.toml",
            "TENSORD_ADDRESS": "unix:/run/tensord/socket",
        }
        variables = {"root": str(root), "volumes": str(volumes), "group": group}
        # Where / is no mount, in a chroot, nothing can be said of it; then the first bind may show outside.
        propagation = "private" if is_mounted("/") else "unchanged"
        self._root = root
        start = time.monotonic()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", f"--propagation={propagation}"]
                + ["bash", "-euc", START, "start", *flags],
                env=environment | variables,
                stderr=log,
            )
        assert eventually(lambda: "version=" in self.log() or not self.runs()), self.log()
        assert self.runs(), self.log()
        self.start_seconds = time.monotonic() - start

    def __enter__(self) -> Container:
        return self

    def __exit__(self, *unused: object) -> None:
        self.process.kill()
        self.process.wait()
        if is_mounted(str(self._root)):
            subprocess.run(["umount", "--lazy", self._root], check=True)

    def runs(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self._log.read_text()

    def volume(self, path: str) -> Path:
        """Where a path of a volume lies on this machine."""
        return self._volumes / path

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def is_healthy(self) -> bool:
        """What the image's health check says, run where the server runs."""
        place = ["nsenter", f"--target={self.process.pid}", "--mount", "--root"]
        check = ["/usr/bin/tensorctl", "--address=unix:/run/tensord/socket", "health"]
        return subprocess.run([*place, *check], capture_output=True).returncode == 0

    def status(self, key: str) -> list[str]:
        """A line of /proc/PID/status."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (each for each in lines if each.startswith(f"{key}:"))
        return line.split()[1:]

    def root_is_read_only(self) -> bool:
        mounts = Path(f"/proc/{self.process.pid}/mountinfo").read_text().splitlines()
        (options,) = (line.split()[5] for line in mounts if line.split()[4] == "/")
        return "ro" in options.split(",")

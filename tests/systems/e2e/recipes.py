"""The recipes of docs/log-directories.md as they are typed: the kit by ssh, and by the exec form of containers.

The brokers lie where operators put them, each below a root of its own with busybox and nothing else, as in an image
that has hardly anything. A root stands for a container: what `kubectl exec -i POD --` and `docker exec -i NAME` do
with the words behind them, `chroot ROOT` does.
"""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.systems.e2e.broker import Cluster, free_port, listens
from tests.tools.processes import wait_until
from txn_analysis.cli.shell_verbs import SCRIPT

LAYOUTS = (
    "/var/lib/kafka/data-0/kafka-log0",  # Strimzi, the first of several disks
    "/var/lib/kafka/data",  # the images of Confluent
    "/mnt/data/data0/logs",  # Confluent for Kubernetes
)
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
MAY_CHROOT = os.geteuid() == 0 and shutil.which("busybox") is not None


class HousedCluster(Cluster):
    """Three nodes, each below a root of its own, where operators put it."""

    def root(self, node: int) -> Path:
        """The root of a node."""
        return self.folder / f"root-{node + 1}"

    def log_dir(self, node: int = 0) -> Path:
        """The `log.dirs` of a node, as seen from outside."""
        return self.root(node) / LAYOUTS[node].lstrip("/")


def furnish(root: Path) -> None:
    """Put a busybox below a root, with what it needs to run."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    for folder in ("bin", "dev", "tmp"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(busybox, root / "bin/busybox")
    linked = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False).stdout
    for library in (word for word in linked.split() if word.startswith("/")):
        (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.lstrip("/"))
    if not (root / "dev/null").exists():
        os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        os.mknod(root / "dev/zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    subprocess.run(["chroot", str(root), "/bin/busybox", "--install", "-s", "/bin"], check=True)


def taken(before: str, log_dirs: dict[str, str], target: Path) -> list[dict[str, Any]]:
    """The kit on several brokers at once, its archives into folders of their names; their manifests.

    Args:
        before: what is typed before `sh`, with `{broker}` in it.
        log_dirs: by broker.
        target: where the folders go.
    """
    lines = [
        f"mkdir -p {target}/{broker}; {before.format(broker=broker)} sh -s -- --tar {log_dir}"
        f" < {SCRIPT} | tar x -C {target}/{broker} &"
        for broker, log_dir in log_dirs.items()
    ]
    subprocess.run(["sh", "-c", "\n".join([*lines, "wait"])], check=True)
    return [json.loads((target / broker / "txn-capture.json").read_text()) for broker in log_dirs]


@contextmanager
def sshd(folder: Path) -> Iterator[Path]:
    """A server on loopback that lets in who has the key; the configuration of a client that knows three names of it."""
    assert SSHD is not None
    folder.mkdir()
    for key in ("host", "client"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(words, check=True, capture_output=True)
    port = free_port()
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    options = (
        *("ListenAddress=127.0.0.1", "StrictModes=no", "UsePAM=no", "PidFile=none", "PasswordAuthentication=no"),
        f"AuthorizedKeysFile={folder}/client.pub",
    )
    command = [SSHD, "-D", "-e", "-f", "/dev/null", "-p", str(port), "-h", str(folder / "host")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, *(word for o in options for word in ("-o", o))], stderr=log)
    try:
        wait_until(lambda: server.poll() is not None or listens(port), "sshd")
        config = folder / "config"
        config.write_text(
            f"Host broker-*\n HostName 127.0.0.1\n Port {port}\n IdentityFile {folder}/client\n"
            f" IdentitiesOnly yes\n BatchMode yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n"
            " LogLevel ERROR\n"
        )
        yield config
    finally:
        server.terminate()
        server.wait()

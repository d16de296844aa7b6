"""An S3 server on loopback (`versitygw`, its objects in a folder), and a proxy before it that counts, waits and fails.

Both are built by Go, once, into `.reach/`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from tests.faults.processes import wait_until
from tests.stores.s3_server import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".reach"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
BUCKET = "reach"


class Counts(NamedTuple):
    """What went through the proxy since it was asked last."""

    requests: int
    bytes_read: int


class Gateway(NamedTuple):
    """A server that runs; `port` is the proxy's."""

    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """What lets a process find it."""
        return environment(f"http://127.0.0.1:{self.port}")

    @property
    def uncounted(self) -> dict[str, str]:
        """The same without the proxy, which takes as much of the processor as the server does."""
        return environment(f"http://127.0.0.1:{self.port + 1}")

    def counts(self) -> Counts:
        """How much was asked of it since the last look."""
        with urlopen(f"http://127.0.0.1:{self.port}/.counts") as answer:
            requests, sent = answer.read().split()
        return Counts(int(requests), int(sent))


def build() -> None:
    """Build both programs where they are missing.

    Raises:
        SystemExit: there is no Go.
    """
    if shutil.which("go") is None:
        raise SystemExit("error: make reach builds an S3 server: Go is needed on the PATH")
    BUILT.mkdir(exist_ok=True)
    if not (BUILT / "versitygw").exists():
        known = os.environ | {"GOBIN": str(BUILT)}
        subprocess.run(["go", "install", VERSITYGW], env=known, check=True)
    proxy = Path(__file__).with_name("proxy.go")
    if not (BUILT / "proxy").exists() or (BUILT / "proxy").stat().st_mtime < proxy.stat().st_mtime:
        subprocess.run(["go", "build", "-o", str(BUILT / "proxy"), str(proxy)], check=True)


@contextmanager
def gateway(folder: Path, port: int = 7080, *faults: str) -> Iterator[Gateway]:
    """The server of a folder behind a proxy with some faults, for as long as the context lasts."""
    (folder / "objects" / BUCKET).mkdir(parents=True, exist_ok=True)
    known = os.environ | {"ROOT_ACCESS_KEY": "key-of-tests", "ROOT_SECRET_KEY": "secret-of-tests"}
    server = [str(BUILT / "versitygw"), "--quiet", "--port", f"127.0.0.1:{port + 1}", "posix", str(folder / "objects")]
    proxy = [str(BUILT / "proxy"), "-listen", f"127.0.0.1:{port}", "-to", f"127.0.0.1:{port + 1}", *faults]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(server, env=known, **quiet) as one, subprocess.Popen(proxy, **quiet) as other:  # type: ignore[call-overload]
        try:
            found = Gateway(folder, port)
            _wait_for(port + 1)
            _wait_for(port)
            yield found
        finally:
            for process in (other, one):
                process.terminate()


def answer_of(address: str) -> str:
    """What a server on loopback says; nothing while it does not listen."""
    try:
        with urlopen(address) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        return str(error)
    except URLError:
        return ""


def _wait_for(port: int) -> None:
    wait_until(lambda: bool(answer_of(f"http://127.0.0.1:{port}/.counts")), f"a server on port {port}")

"""Azure's store and Google's, as emulators on loopback: Azurite by npm, fake-gcs-server by Go, kept in `.reach/`.

fake-gcs-server answers what readers ask, but refuses `PUT` as `object_store` sends it: no warehouse can be in it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from typing import TYPE_CHECKING
from unittest.mock import patch
from urllib.request import Request, urlopen

from tests.faults.processes import wait_until
from tests.reach.cells import CASES, KINDS, WORDS, Cells, stored
from tests.reach.gateway import BUCKET, BUILT, answer_of
from tests.reach.processes import run
from txn_analysis.stores.store import store_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_AZURITE, _FAKE_GCS = "azurite@3.35.0", "github.com/fsouza/fake-gcs-server@v1.56.1"
_AZURE_PORT, _GOOGLE_PORT = 7300, 7310
_ACCOUNT = "devstoreaccount1"  # and its key, which Azurite's documents give
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_API = "2020-10-02"
_CAPTURE = CASES / "kafka-4.2"


def emulators(folder: Path, _: int = 1) -> list[str]:
    """Audits from and into each emulator; what did not hold."""
    cells = Cells()
    print("\n| what | outcome | s | CPU s | requests | MiB read |\n|---|---|---:|---:|---:|---:|")
    expected = {}
    for name, parts in KINDS.items():
        place = str(folder / f"here-{name}")
        ran = run({}, "audit", *(f"{CASES}/{part}" for part in parts), *WORDS, "--warehouse", place)
        expected[name] = stored(place, str(CASES))
        cells.row(f"{name} on a disk, warehouse on a disk", ran, None, is_right=any(expected[name]["findings"]))
    with ExitStack() as running:
        for what, server, is_written in (("Azure", azurite, True), ("Google's store", fake_gcs, False)):
            root, environment = running.enter_context(server(folder))
            running.enter_context(patch.dict(os.environ, environment))
            if is_written:
                for path in sorted(path for path in _CAPTURE.rglob("*") if path.is_file()):
                    store_at(root).put(f"cases/{path.relative_to(CASES)}", path.read_bytes())
            places = {"on a disk": str(folder / what[:5])} | ({f"in {what}": f"{root}/audits"} if is_written else {})
            for name, parts in KINDS.items():
                for where, place in places.items():
                    paths = [f"{root}/cases/{part}" for part in parts]
                    ran = run(environment, "audit", *paths, *WORDS, "--warehouse", f"{place}/{name}")
                    is_right = ran.code == 0 and stored(f"{place}/{name}", f"{root}/cases") == expected[name]
                    cells.row(f"{name} in {what}, warehouse {where}", ran, None, is_right=is_right)
            if is_written:
                ran = run(environment, "report", "--warehouse", f"{root}/audits/texts")
                cells.row(f"`report` from {what}", ran, None, is_right=ran.code == 1, said="answered")
    return cells.wrong


@contextmanager
def azurite(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Azurite with an empty container: its URI, and what lets a process find it."""
    program = BUILT / "azurite/node_modules/.bin/azurite-blob"
    if not program.exists():
        if shutil.which("npm") is None:
            raise SystemExit("error: the part emulators needs npm on the PATH, which fetches Azurite")
        program.parents[2].mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", _AZURITE], cwd=program.parents[2], check=True)
    address = f"http://127.0.0.1:{_AZURE_PORT}"
    words = ["--blobHost", "127.0.0.1", "--blobPort", str(_AZURE_PORT), "--location", str(folder / "azurite")]
    with _running([str(program), *words, "--silent", "--skipApiVersionCheck", "--disableTelemetry"], address):
        date = formatdate(usegmt=True)
        signed = f"x-ms-date:{date}\nx-ms-version:{_API}\n/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
        signature = hmac.new(base64.b64decode(_KEY), f"PUT{12 * chr(10)}{signed}".encode(), hashlib.sha256).digest()
        headers = {
            "x-ms-date": date,
            "x-ms-version": _API,
            "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(signature).decode()}",
        }
        container = f"{address}/{_ACCOUNT}/{BUCKET}?restype=container"
        urlopen(Request(container, method="PUT", headers=headers)).close()
        root = f"abfss://{BUCKET}@{_ACCOUNT}.dfs.core.windows.net"
        yield root, {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": address}


@contextmanager
def fake_gcs(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """fake-gcs-server with the capture in its bucket: its URI, and what lets a process find it."""
    program = BUILT / "fake-gcs-server"
    if not program.exists():
        subprocess.run(["go", "install", _FAKE_GCS], env=os.environ | {"GOBIN": str(BUILT)}, check=True)
    own = folder / "google"
    shutil.copytree(_CAPTURE, own / "objects" / BUCKET / "cases" / _CAPTURE.name)
    authority = _certificates(own)
    address = f"127.0.0.1:{_GOOGLE_PORT}"
    account = {"gcs_base_url": f"https://{address}", "disable_oauth": True, "client_email": "", "private_key": ""}
    (own / "account.json").write_text(json.dumps(account | {"private_key_id": ""}))
    words = ["-scheme", "https", "-host", "127.0.0.1", "-port", str(_GOOGLE_PORT), "-public-host", address]
    words += ["-backend", "memory", "-data", str(own / "objects"), "-log-level", "error"]
    words += ["-cert-location", str(own / "server.pem"), "-private-key-location", str(own / "server.key")]
    with _running([str(program), *words], f"http://{address}"):
        found = {"GOOGLE_SERVICE_ACCOUNT": str(own / "account.json"), "SSL_CERT_FILE": str(authority)}
        yield f"gs://{BUCKET}", found


def _certificates(folder: Path) -> Path:
    """A server's certificate for 127.0.0.1 in a folder; the path of the authority's that signed it."""
    new, signer = (
        ["-newkey", "rsa:2048", "-nodes"],
        ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"],
    )
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
    for words in (
        ["req", "-x509", *new, "-keyout", "authority.key", "-out", "authority.pem", "-subj", "/CN=authority"],
        ["req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server"],
        ["x509", "-req", "-in", "server.csr", "-out", "server.pem", "-extfile", "names", *signer],
    ):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    return folder / "authority.pem"


@contextmanager
def _running(command: list[str], address: str) -> Iterator[None]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet) as process:  # type: ignore[call-overload]
        try:
            wait_until(lambda: bool(answer_of(address)), f"a server at {address}")
            yield
        finally:
            process.terminate()

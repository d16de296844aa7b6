"""A small S3 in this process, on loopback: what the program asks of a bucket, counted, with faults on demand.

It knows what object stores of S3's kind are asked here: ranges, `If-Match`, `If-None-Match: *`, pages of a listing,
uploads in parts. It keeps objects in memory, and checks no signature.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

PAGE_KEYS = 1000


class Kept(NamedTuple):
    """An object; `moment` is when it was put."""

    data: bytes
    tag: str
    moment: float


@dataclass(frozen=True)
class Fault:
    """What becomes of one request in place of its answer: a status, or a body that is cut, or that comes late."""

    status: int | None = None
    cut_at_bytes: int | None = None


@dataclass
class Bucket:
    """What the server holds and has counted; `fault` is asked about each request, by its method, key and number."""

    objects: dict[str, Kept] = field(default_factory=dict)
    has_tags: bool = True
    clock: Iterator[float] = field(default_factory=lambda: count(1_796_000_000.25))
    requests: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    fault: Callable[[str, str], Fault | None] = lambda *_: None
    before_put: Callable[[str], None] = lambda _: None
    lock: Any = field(default_factory=threading.RLock)

    def put(self, key: str, data: bytes) -> str:
        """Keeps an object, in place of one of this key."""
        tag = f'"{md5(data).hexdigest()}"'
        with self.lock:
            self.objects[key] = Kept(data, tag, next(self.clock))
        return tag

    def put_folder(self, folder: Path, key: str) -> None:
        """All files below a folder, as objects below a key."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())

    @property
    def request_count(self) -> int:
        """All requests so far."""
        return sum(self.requests.values())


@contextmanager
def served(bucket: Bucket) -> Iterator[str]:
    """The address of a server of one bucket, whatever its name, for as long as the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(bucket))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment(address: str) -> dict[str, str]:
    """What lets every S3 client of a process find the server."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "key-of-tests",
        "AWS_SECRET_ACCESS_KEY": "secret-of-tests",
        "AWS_REGION": "us-east-1",
    }


def _handler(bucket: Bucket) -> type[BaseHTTPRequestHandler]:  # noqa: C901 one method for each kind of request
    uploads: dict[str, dict[int, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 1 << 16

        def log_message(self, *_: object) -> None:
            pass

        def _answer(
            self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, cut: int | None = None
        ) -> None:
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                with bucket.lock:
                    bucket.bytes_read += len(body)
                self.wfile.write(body if cut is None else body[:cut])
            self.wfile.flush()
            if cut is not None:
                self.close_connection = True

        def _error(self, status: int, code: str) -> None:
            self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

        def _asked(self) -> tuple[str, dict[str, list[str]], Fault | None]:
            parts = urlsplit(self.path)
            key = unquote(parts.path).partition("/")[2].partition("/")[2]
            query = parse_qs(parts.query, keep_blank_values=True)
            kind = "LIST" if self.command == "GET" and not key else self.command
            with bucket.lock:
                bucket.requests[kind] += 1
            return key, query, bucket.fault(kind, key or query.get("prefix", [""])[0])

        def do_GET(self) -> None:
            key, query, fault = self._asked()
            if fault and fault.status:
                self._error(fault.status, "Fault")
            elif not key:
                self._answer(200, _page(bucket, query))
            else:
                self._object(key, fault)

        def do_HEAD(self) -> None:
            self.do_GET()

        def _object(self, key: str, fault: Fault | None) -> None:
            kept = bucket.objects.get(key)
            if kept is None:
                return self._error(404, "NoSuchKey")
            if self.headers.get("If-Match", kept.tag) != kept.tag:
                return self._error(412, "PreconditionFailed")
            whole, status = len(kept.data), 200
            start, stop = 0, whole
            headers = {"Last-Modified": formatdate(kept.moment, usegmt=True)}
            headers |= {"ETag": kept.tag} if bucket.has_tags else {}
            if asked := self.headers.get("Range"):
                first, _, last = asked.removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, whole - int(last))
                stop = min(whole, int(last) + 1) if first and last else whole
                if start >= whole:
                    return self._error(416, "InvalidRange")
                status, headers["Content-Range"] = 206, f"bytes {start}-{stop - 1}/{whole}"
            if self.command == "HEAD":
                headers["Content-Length"] = str(stop - start)
            return self._answer(status, kept.data[start:stop], headers, fault.cut_at_bytes if fault else None)

        def do_PUT(self) -> None:
            key, query, fault = self._asked()
            data = self.rfile.read(int(self.headers["Content-Length"]))
            bucket.before_put(key)
            if fault and fault.status:
                return self._error(fault.status, "Fault")
            if "uploadId" in query:
                uploads[query["uploadId"][0]][int(query["partNumber"][0])] = data
                return self._answer(200, headers={"ETag": f'"{md5(data).hexdigest()}"'})
            with bucket.lock:
                kept, wanted = bucket.objects.get(key), self.headers.get("If-Match")
                is_other = wanted is not None and (kept is None or kept.tag != wanted)
                if is_other or (self.headers.get("If-None-Match") == "*" and kept is not None):
                    return self._error(412, "PreconditionFailed")
                tag = bucket.put(key, data)
            return self._answer(200, headers={"ETag": tag})

        def do_POST(self) -> None:
            key, query, _ = self._asked()
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "uploads" in query:
                number = f"upload-{len(uploads)}"
                uploads[number] = {}
                return self._answer(200, f"<R><UploadId>{number}</UploadId></R>".encode())
            if "uploadId" in query:
                parts = uploads.pop(query["uploadId"][0])
                tag = bucket.put(key, b"".join(parts[n] for n in sorted(parts)))
                return self._answer(200, f"<R><ETag>{escape(tag)}</ETag></R>".encode())
            names = [unescape(name.partition("</Key>")[0]) for name in body.decode().split("<Key>")[1:]]
            for name in names:
                bucket.objects.pop(name, None)
            gone = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
            return self._answer(200, f"<DeleteResult>{gone}</DeleteResult>".encode())

        def do_DELETE(self) -> None:
            key, query, _ = self._asked()
            uploads.pop(query.get("uploadId", [""])[0], None)
            bucket.objects.pop(key, None)
            self._answer(204)

    return Handler


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _page(bucket: Bucket, query: dict[str, list[str]]) -> bytes:
    """One page of a listing (`ListObjectsV2`)."""
    prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
    after = query.get("continuation-token", query.get("start-after", [""]))[0]
    keys: list[str] = []
    folders: list[str] = []
    with bucket.lock:
        objects = dict(bucket.objects)
    for key in sorted(objects):
        if not key.startswith(prefix):
            continue
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            folder = prefix + rest.partition(delimiter)[0] + delimiter
            if folder not in folders and folder > after:
                folders.append(folder)
        elif key > after:
            keys.append(key)
    names = sorted([*keys, *folders])
    page = names[:PAGE_KEYS]
    is_cut = len(names) > PAGE_KEYS
    entries = "".join(
        f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        if name in folders
        else f"<Contents><Key>{escape(name)}</Key><Size>{len(objects[name].data)}</Size>"
        f"<LastModified>{_iso(objects[name].moment)}</LastModified>"
        f"{f'<ETag>{escape(objects[name].tag)}</ETag>' * bucket.has_tags}</Contents>"
        for name in page
    )
    more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if is_cut else ""
    return (
        f"<ListBucketResult><IsTruncated>{str(is_cut).lower()}</IsTruncated>{more}<KeyCount>{len(page)}</KeyCount>"
        f"{entries}</ListBucketResult>"
    ).encode()

"""Paths and URIs: which of them name a file of this machine, which a store, and how that store is reached.

Nothing is opened here. What the environment, a profile or the role of the machine say of a store is neither kept nor
shown. `obstore` and `deltalake` look themselves at the environment and at the role of a machine, a container or a pod.
AWS profiles `deltalake` reads itself, and `obstore` by `boto3`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

_OBJECT_STORES = ("s3", "s3a", "gs", "abfs", "abfss")
_HDFS = "hdfs"
SCHEMES = ("file", *_OBJECT_STORES, _HDFS)
SHOWN_SCHEMES = "s3:// (or s3a://), gs://, abfss://, hdfs:// or file://"

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_FILE = "file:/"
_CREDENTIALS = re.compile(r"(?<!abfs)(?<!abfss)://[^/]*@|://[^/@]*:[^/]*@")


class PlaceError(ValueError):
    """A URI that names nothing that can be read; the text says what to do."""


class Place(NamedTuple):
    """A name in a store.

    Attributes:
        root: the bucket, container or file system, as a URI that ends without `/`.
        key: the name in it, without a `/` at its ends; empty for all of it.
    """

    root: str
    key: str

    @property
    def uri(self) -> str:
        """The whole name."""
        return f"{self.root}/{self.key}" if self.key else self.root

    def child(self, key: str) -> Place:
        """Another name in the same store."""
        return Place(self.root, key.strip("/"))


def place_of(given: str) -> Place | None:
    """The name in a store that is meant; None for one of this machine, a path or a `file://` URI.

    A key is taken as it is written: stores escape nothing in their names.

    Raises:
        PlaceError: the URI is of a scheme that is not known, or names no bucket, or has credentials in it.
    """
    uri = _URI.match(given)
    if uri is None or uri[1].lower() == "file":
        return None
    scheme = uri[1].lower()
    if scheme not in SCHEMES:
        raise PlaceError(
            f"no storage that is known begins with {scheme}://. Give a path, or a URI with {SHOWN_SCHEMES}"
        )
    authority, _, key = given[uri.end() :].partition("/")
    user, at, _ = authority.rpartition("@")
    # abfss://container@account.dfs.core.windows.net is a name; user:password@ is none.
    if at and (":" in user or not scheme.startswith("abfs")):
        raise PlaceError("credentials do not belong into a name. Give them in the environment, a profile or a role")
    if not authority and scheme != _HDFS:
        raise PlaceError(f"names no bucket. Give {scheme}://BUCKET/NAME")
    if scheme.startswith("abfs") and not at:
        raise PlaceError(f"names no account. Give {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME")
    return Place(f"{scheme}://{authority}", key.strip("/"))


def shown(given: str) -> str:
    """What was given without the credentials that do not belong into it."""
    return _CREDENTIALS.sub("://…@", given)


def local_path(given: str) -> str:
    """The path of this machine that a path or a `file://` URI names.

    Raises:
        PlaceError: it is a URI of another machine's disk.
    """
    if not given.lower().startswith(_FILE):
        return given
    uri = urlsplit(given)
    if uri.netloc not in {"", "localhost"}:
        raise PlaceError(f"is on the disk of {uri.netloc}. Give file:///PATH, which is on this machine")
    return unquote(uri.path)


_REQUEST_TIMEOUT, _CONNECT_TIMEOUT = "60s", "5s"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def client_options(root: str) -> dict[str, Any]:
    """How connections are made; a plain one only to an endpoint that was named so."""
    return {"timeout": _REQUEST_TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT, "allow_http": _is_plain(root)}


def delta_options(root: str) -> dict[str, str]:
    """What `deltalake` is told of a store beside its name; it reads profiles itself."""
    options = {"timeout": _REQUEST_TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT}
    if _is_plain(root):
        options["allow_http"] = "true"
    if _is_s3(root):
        endpoint = _endpoint()
        # By default it knows a lock table alone; stores of S3's kind refuse the second of two themselves.
        options |= {"conditional_put": "etag"} | ({"endpoint_url": endpoint} if endpoint else {})
    return options


def _is_s3(root: str) -> bool:
    return root.startswith(("s3://", "s3a://"))


def _endpoint() -> str | None:
    return next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)


def _is_plain(root: str) -> bool:
    return _is_s3(root) and (_endpoint() or "").startswith("http://")


def has_profile(root: str) -> bool:
    """Whether the keys of a store are those of an AWS profile: one is named, or there is a file of them."""
    if not _is_s3(root) or "AWS_ACCESS_KEY_ID" in os.environ:
        return False
    file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or Path.home() / ".aws" / "credentials"
    return "AWS_PROFILE" in os.environ or Path(file).is_file()

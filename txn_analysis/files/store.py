"""A store: one bucket, container or file system, whose objects are named, listed, read in ranges, and put.

Object stores are asked by `obstore`, file systems of Hadoop by the client that `deltalake` brings along, which needs no
Java. Of three libraries `obstore` alone says which version of an object is meant. What a store answers is tried again
within bounds, and then said in one line; of its own words only the status is shown, as they may quote the request. A
URI names one object, a folder of them, or a glob.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import IO, Any, NamedTuple, Protocol

from txn_analysis.files.places import Place, client_options, has_profile

_PAGE = 1000
_TRIES = 6  # of one request, with pauses that grow
_RETRIES_FOR = timedelta(seconds=60)
_STATUS = re.compile(r"status code: (\d{3} [A-Za-z ]+)")
_GONE = "there is no such object"
_NO_ACCESS = "the store refuses access ({}). Check the credentials: the environment, the profile or the role"
_DELETED_AT_ONCE = 1000  # by one request of S3
_DATED = "of "  # entity tags begin with a quote, or with `W/`
_MOVED = "the bucket is in another region. Set AWS_REGION to it"
_NO_ANSWER = "the store failed {} times ({}). Run the same command again"
_UNREADABLE = "the store has names that cannot be read, such as one with `//` in it. Name what to read more closely"


class StoreError(OSError):
    """A store does not give, or take, what it is asked for; one line."""


class ChangedError(StoreError):
    """An object is not the one any more that was listed."""

    def __init__(self) -> None:
        super().__init__("the object was replaced while it was read")


class Version(NamedTuple):
    """What an object was when it was listed.

    Attributes:
        tag: differs once the object is replaced: its entity tag, or its time; empty where any will do.
    """

    tag: str
    size_bytes: int


Piece = bytes | memoryview
"""Bytes as a client hands them out: each copy of a GiB is half a second."""


class Found(NamedTuple):
    """An object of a store as it was found; `key` is its name there."""

    key: str
    version: Version


class Files(Protocol):
    """What stores can do, and a disk of this machine."""

    def listed(self, prefix: str) -> Iterator[Found]:
        """All objects below a folder, in any order; nothing where there is none."""

    def read(self, key: str, start: int, end: int, version: Version) -> Piece:
        """The bytes from `start` up to `end`, all of which must be there, of an object of this version.

        Raises:
            ChangedError: it is another version, or gone.
        """

    def drop(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no error."""


class Store(Files, Protocol):
    """What every kind of store can do.

    Every method raises StoreError where the store does not answer or refuses, FileNotFoundError where there is no such
    object.
    """

    def head(self, key: str) -> Found | None:
        """One object; None where there is none."""

    def put(self, key: str, data: bytes | IO[bytes]) -> None:
        """Keep an object as a whole."""

    def replace(self, key: str, data: bytes, version: Version | None) -> None:
        """Keep an object in place of its version that was read, or where there was none.

        Raises:
            ChangedError: somebody else has put another one there meanwhile.
        """


@lru_cache(maxsize=64)
def store_at(root: str) -> Store:
    """The store of a root, with its connections, once in each process."""
    if root.startswith("hdfs://"):
        from txn_analysis.files.hdfs import HdfsStore

        return HdfsStore(root)
    return _ObjectStore(root)


def store_of(place: Place) -> Store:
    """The store that a name is in."""
    return store_at(place.root)


class _ObjectStore:
    """A bucket or container; methods are those of `Store`."""

    def __init__(self, root: str) -> None:
        # Its place in memory is a second's tenth, which commands on a disk do without.
        from obstore.store import from_url

        options: dict[str, Any] = {"client_options": client_options(root)}
        if has_profile(root):
            options["credential_provider"] = _profile()
        with _worded():
            self._store: Any = from_url(
                root, retry_config={"max_retries": _TRIES - 1, "retry_timeout": _RETRIES_FOR}, **options
            )

    def listed(self, prefix: str) -> Iterator[Found]:
        with _worded():
            for page in self._store.list(prefix or None, chunk_size=_PAGE):
                yield from map(_object_of, page)

    def head(self, key: str) -> Found | None:
        try:
            with _worded():
                return _object_of(self._store.head(key))
        except FileNotFoundError:
            return None

    def read(self, key: str, start: int, end: int, version: Version) -> Piece:
        is_dated = version.tag.startswith(_DATED)
        options: Any = {"range": (start, end)}
        if version.tag and not is_dated:
            options["if_match"] = version.tag  # compared by the store itself
        try:
            with _worded():
                got = self._store.get(key, options=options)
                if is_dated and _date(got.meta) != version.tag:
                    raise ChangedError
                return memoryview(got.bytes())
        except FileNotFoundError:
            if version.tag:
                raise ChangedError from None
            raise

    def put(self, key: str, data: bytes | IO[bytes]) -> None:
        with _worded():
            self._store.put(key, data)

    def replace(self, key: str, data: bytes, version: Version | None) -> None:
        mode: Any = "create"
        if version is not None:
            with _worded():
                meta = self._store.head(key)
            if _object_of(meta).version != version:
                raise ChangedError
            # Compared by the store itself; one without tags cannot.
            mode = {name: meta[name] for name in ("e_tag", "version") if meta[name]} if meta["e_tag"] else "overwrite"
        with _worded():
            self._store.put(key, data, mode=mode)

    def drop(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            with suppress(FileNotFoundError), _worded():
                self._store.delete([*keys[start : start + _DELETED_AT_ONCE]])


def _profile() -> Any:
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise StoreError("AWS profiles are read by boto3, which is not installed: pip install boto3") from None
    return Boto3CredentialProvider()


def _object_of(meta: Any) -> Found:
    return Found(meta["path"], Version(meta["e_tag"] or _date(meta), meta["size"]))


def _date(meta: Any) -> str:
    """What stands for an entity tag where a store has none: when the object was put, in the seconds of its answers."""
    return f"{_DATED}{int(meta['last_modified'].timestamp())}"


@contextmanager
def _worded() -> Iterator[None]:
    """What a store answers meanwhile is said in the words of the problem.

    Raises:
        StoreError, ChangedError, FileNotFoundError: as of `Store`.
    """
    from obstore import exceptions

    try:
        yield
    except (FileNotFoundError, exceptions.NotFoundError):
        raise FileNotFoundError(_GONE) from None
    except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
        raise ChangedError from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise StoreError(_NO_ACCESS.format(_status(error) or "403")) from None
    except exceptions.InvalidPathError:
        raise StoreError(_UNREADABLE) from None
    except exceptions.BaseError as error:
        raise StoreError(_in_words(error)) from None


def _status(error: Exception) -> str | None:
    status = _STATUS.search(str(error))
    return status[1].strip() if status else None


def _in_words(error: Exception) -> str:
    text, status = str(error).partition("\n\nDebug source")[0].lower(), _status(error)
    if "redirect" in text:
        return _MOVED
    if status and status.startswith(("401", "403")):  # of whoever gives out credentials
        return _NO_ACCESS.format(status)
    if status is None and ("credential" in text or "169.254." in text):
        return _NO_ACCESS.format("there are no credentials")
    return _NO_ANSWER.format(_TRIES, status or _cause(text))


def _cause(text: str) -> str:
    """Why there was no answer at all, in one of a few words."""
    known = (("timed out", "timeout"), "no answer in time"), (("connect", "dns"), "no connection")
    return next((words for signs, words in known if any(sign in text for sign in signs)), "no whole answer")


_GLOB = re.compile(r"[*?\[]")


def found_below(place: Place) -> tuple[str, list[Found]]:
    """The folder that a name begins with, and the objects that it names there.

    That is all of a folder, or what a glob matches as the shell does: `*` within one folder, `**` across them.
    """
    glob, store = _GLOB.search(place.key), store_of(place)
    if glob is None:
        return place.key, [*store.listed(place.key)]
    folder, parts = place.key[: glob.start()].rpartition("/")[0], place.key.split("/")
    return folder, [each for each in store.listed(folder) if _is_named(each.key.split("/"), parts)]


def has_glob(place: Place) -> bool:
    """Whether a name has a character that a glob has."""
    return _GLOB.search(place.key) is not None


def _is_named(key: Sequence[str], glob: Sequence[str]) -> bool:
    """Whether a glob matches a key, both by their parts; a folder that it names counts with all that is in it."""
    if not glob:
        return True
    if glob[0] == "**":
        return any(_is_named(key[start:], glob[1:]) for start in range(len(key) + 1))
    return bool(key) and fnmatchcase(key[0], glob[0]) and _is_named(key[1:], glob[1:])

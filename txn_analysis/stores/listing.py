"""Which objects a URI names: one of them, a folder of them, or a glob."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from txn_analysis.stores.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from txn_analysis.stores.places import Place
    from txn_analysis.stores.store import Found

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_GLOB = re.compile(r"[*?\[]")
_AT_ONCE = 16  # pages of a listing follow each other; folders need not


def found_below(place: Place) -> tuple[str, list[Found]]:
    """The folder that a name begins with, and the objects that it names there.

    That is all of a folder, or what a glob matches as the shell does: `*` within one folder, `**` across them.
    """
    glob = _GLOB.search(place.key)
    if glob is None:
        return place.key, list(found_in(place))
    folder = place.key[: glob.start()].rpartition("/")[0]
    pattern = re.compile(_expression(place.key))
    return folder, [found for found in found_in(place.child(folder)) if pattern.fullmatch(found.key)]


def has_glob(place: Place) -> bool:
    """Whether a name has a character that a glob has."""
    return _GLOB.search(place.key) is not None


def _expression(glob: str) -> str:
    """A glob as a regular expression over whole keys; a folder that it names counts with all that is in it."""
    parts = []
    for word in re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\])", glob):
        if word == "**/":
            parts.append(r"(?:.*/)?")
        elif word == "**":
            parts.append(r".*")
        elif word == "*":
            parts.append(r"[^/]*")
        elif word == "?":
            parts.append(r"[^/]")
        elif word.startswith("[") and word.endswith("]") and len(word) > 2:
            parts.append(f"[{'^' * word.startswith('[!')}{_escaped(word.strip('[]').removeprefix('!'))}]")
        else:
            parts.append(re.escape(word))
    return "".join(parts) + r"(?:/.*)?"


def _escaped(characters: str) -> str:
    return re.sub(r"([\\^\[])", r"\\\1", characters)


def found_in(place: Place) -> Iterator[Found]:
    """All objects below a folder; its sub-folders are listed side by side, each a page at a time."""
    store = store_of(place)
    folders = [place.key]
    files: list[Found] = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        while folders and len(folders) < _AT_ONCE:
            looked = _each(pool, store.within, folders)
            files += [found for _, own in looked for found in own]
            folders = [folder.rstrip("/") for deeper, _ in looked for folder in deeper]
        yield from files
        for own in _each(pool, lambda folder: list(store.listed(folder)), folders):
            yield from own


def _each(pool: ThreadPoolExecutor, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    return list(pool.map(function, items))

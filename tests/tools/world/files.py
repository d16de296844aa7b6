"""How a copied state lies in the files of a folder, and what the copy kit says of that folder.

The cleaner keeps the names of the files that it rewrites, empties some of them, and leaves holes between them. While it
puts a group of files in place none of them is in a list; retention deletes the first ones; and manifests of 1.0 say
nothing of folders.
"""

import random
from collections.abc import Mapping
from typing import NamedTuple

from tests.tools.stories.histories import STATE_TOPIC, File, Row
from tests.tools.world.model import StateRow
from txn_analysis.tables.inputs import CopiedFile, Manifest

ONE_FILE = "each partition of the state is one file"
WHOLE = "the kit says that the folders of the state are whole"
UNSAID = "a manifest of 1.0 says nothing of the folders of the state"
SWAPPED = "the cleaner replaces files while the kit lists them, and the kit says so"
DELETED = "retention deleted the first files of the state"
KINDS = (ONE_FILE, ONE_FILE, ONE_FILE, WHOLE, WHOLE, UNSAID, SWAPPED, DELETED)


class Folder(NamedTuple):
    """One partition of the state in its files, by the base offsets that are their names; and what the kit says."""

    bases: tuple[int, ...]
    is_whole: bool | None


def kind_of_files(seed: str) -> str:
    """Drawn apart from all else that is left to chance, which stays as it was."""
    return random.Random(f"{seed}, files").choice(KINDS)


def in_files(
    states: tuple[tuple[StateRow, ...], ...], kind: str, seed: str
) -> tuple[tuple[tuple[StateRow, ...], ...], tuple[Folder, ...]]:
    """What was copied of each partition of the state, and how it lies in files; no folders for one file each."""
    if kind == ONE_FILE:
        return states, ()
    source = random.Random(f"{seed}, {kind}")
    found = [_in_files(rows, kind, source) for rows in states]
    return tuple(rows for rows, _ in found), tuple(folder for _, folder in found)


def _in_files(rows: tuple[StateRow, ...], kind: str, source: random.Random) -> tuple[tuple[StateRow, ...], Folder]:
    end = rows[-1].offset + 1 if rows else 0
    rolled = sorted(source.sample(range(1, end), min(source.randrange(1, 4), end - 1))) if end > 1 else []
    bases = [0, *rolled]
    if kind == SWAPPED and rolled:
        gone = source.randrange(len(bases) - 1)  # it never looks into the last file, which is still written to
        upper = [*bases[1:], end][gone]
        rows = tuple(row for row in rows if not bases[gone] <= row.offset < upper)
        del bases[gone]
    if kind == DELETED and rolled:
        bases = bases[source.randrange(1, len(bases)) :]
        rows = tuple(row for row in rows if row.offset >= bases[0])
    return rows, Folder(tuple(bases), {UNSAID: None, SWAPPED: False}.get(kind, True))


def files_of(number: int, rows: list[Row], folder: Folder, name: str | None) -> list[File]:
    """The files of one partition; those that the cleaner emptied among them."""
    place = (STATE_TOPIC, number)
    upper = [*folder.bases[1:], 1 << 62]
    return [
        File(place, [r for r in rows if base <= r["offset"] < end], base_offset=base, folder=name)
        for base, end in zip(folder.bases, upper, strict=True)
    ]


def manifest_of(files: Mapping[int, list[File]], folders: tuple[Folder, ...], epochs: Mapping[int, int]) -> Manifest:
    """A manifest that says nothing but whose files they are: no time in it proves an order or a reach."""
    entries = [
        CopiedFile(
            input_id=file.input_id,
            path=f"{STATE_TOPIC}-{number}/{file.base_offset:020}.log",
            is_given=True,
            topic=STATE_TOPIC,
            partition=number,
            leader_id=1,
            leader_epoch=epochs[number],
            is_leader_confirmed=True,
            is_end_confirmed=True,
            is_folder_whole=folders[number].is_whole,
        )
        for number, own in files.items()
        for file in own
    ]
    return Manifest("state.json", "broker", None, 1, is_complete=True, files=tuple(entries))

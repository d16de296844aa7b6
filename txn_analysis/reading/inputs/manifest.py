"""Manifests: what a `txn-capture.json` says of the copying of the files beside it, and whether these are its files.

A manifest is foreign text: it is parsed strictly, and its sizes, sums and paths are held against the files. Times and
leaders cannot be; what they prove is for `judge.copied` to say.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal

from blake3 import blake3
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from txn_analysis.errors import InputError
from txn_analysis.files import places
from txn_analysis.files.store import StoreError, store_of
from txn_analysis.kafka.names import (
    BINARY_GRAMMARS,
    INT32_MAX,
    INT64_MAX,
    LAST_TIME_MS,
    LOG,
    MANIFEST_FILE,
    MANIFEST_FORMAT,
    MANIFEST_VERSION,
)
from txn_analysis.reading.inputs.find_files import SourceFile, place_of
from txn_analysis.reading.inputs.planned_input import PlannedInput
from txn_analysis.reading.inputs.refusals import Refusal, Refused
from txn_analysis.reading.inputs.survey import DIGEST_BYTES
from txn_analysis.reading.log_dir.producer_files import keys_once
from txn_analysis.reading.text.text import Text
from txn_analysis.tables.inputs import CopiedFile, Manifest
from txn_analysis.text import count

KIND = "txn_capture"
_FORMAT = f'"{MANIFEST_FORMAT}"'.encode()
_MOST_BYTES = 1 << 30  # 400 bytes a file
_HEAD_BYTES = 1 << 12
_MOST_PATH_BYTES = 4096
_SUMS_AT_ONCE = 4
_SUMMED_BYTES = 4 << 20

_Count = Annotated[int, Field(ge=0, le=INT64_MAX)]
_Ms = Annotated[int, Field(ge=0, le=LAST_TIME_MS)]
_Int32 = Annotated[int, Field(ge=0, le=INT32_MAX)]
_Word = Annotated[str, Field(min_length=1, max_length=249)]


def _stays_inside(path: str) -> str:
    place = PurePosixPath(path)
    if place.is_absolute() or ".." in place.parts or "\0" in path or not place.parts:
        raise ValueError("it leads out of the folder of the manifest")
    return path


_Path = Annotated[str, Field(min_length=1, max_length=_MOST_PATH_BYTES), AfterValidator(_stays_inside)]


class _Said(BaseModel):
    """Strict, as a manifest proves by the letter; a field of tomorrow is no fault, and proves nothing."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class _SaidOfFile(_Said):
    path: _Path
    sequence: _Count | None = None
    topic: _Word | None = None
    topic_id: _Word | None = None
    partition: _Int32 | None = None
    leader_id: _Int32 | None = None
    leader_epoch: _Int32 | None = None
    is_leader_confirmed: bool | None = None
    is_end_confirmed: bool | None = None
    is_folder_whole: bool | None = None
    began_ms: _Ms | None = None
    ended_ms: _Ms | None = None
    began_monotonic_ms: _Count | None = None
    first_offset: _Count | None = None
    end_offset: _Count | None = None
    size_bytes: _Count | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None


class _SaidOfCopy(_Said):
    format: Literal["txn-capture"]
    version: Literal[1]
    made_by: str | None = None
    clock: Literal["broker", "collector"]
    cluster_id: _Word | None = None
    broker_id: _Int32 | None = None
    began_ms: _Ms | None = None
    ended_ms: _Ms | None = None
    is_complete: bool
    files: list[_SaidOfFile]
    deleted: list[_Path] = []


@dataclass(frozen=True)
class FoundManifest:
    """A manifest among the files of a call; `copy` is None where `problem` says why it was not understood."""

    path: str
    data: bytes
    copy: _SaidOfCopy | None
    problem: Refusal | None = None

    @property
    def folder(self) -> str:
        """Where its paths begin."""
        return os.path.dirname(_place(self.path))  # noqa: PTH120 links stay as they are

    @property
    def by_place(self) -> dict[str, _SaidOfFile]:
        """What it says of each file, by an absolute path."""
        files = [] if self.copy is None else self.copy.files
        return {self._inside(file.path): file for file in files}

    @property
    def deleted(self) -> set[str]:
        """What the broker deleted or replaced after it was sent: it is no part of the copy."""
        return set() if self.copy is None else {self._inside(path) for path in self.copy.deleted} - self.by_place.keys()

    def _inside(self, path: str) -> str:
        return _place(os.path.join(self.folder, path))


def _place(path: str) -> str:
    """An absolute path, or a URI, without anything to be worked out in it."""
    place = place_of(path)
    stored = places.place_of(place)
    if stored is None:
        return os.path.abspath(place)  # noqa: PTH100 links stay as they are
    return stored.child(posixpath.normpath(stored.key)).uri


def split_manifests(files: Sequence[SourceFile]) -> tuple[list[FoundManifest], list[SourceFile]]:
    """The manifests among some files, and the other files, without those that a manifest calls deleted."""
    named, others = [], []
    for file in files:
        data = _manifest_data(file)
        if data is None:
            others.append(file)
        else:
            named.append(_parsed(file.path, data))
    deleted = {place for manifest in named for place in manifest.deleted}
    return named, [file for file in others if _place(file.path) not in deleted] if deleted else others


def _manifest_data(file: SourceFile) -> bytes | None:
    """The text of a manifest, by its content; None where a file is something else, or cannot be read."""
    if not file.path.endswith(".json") or file.size_bytes > _MOST_BYTES:
        return None
    is_named = PurePosixPath(file.path).name == MANIFEST_FILE
    try:
        with Text(place_of(file.path), None, file.version) as text:
            head = text.read(0, _HEAD_BYTES)
            is_one = head.lstrip()[:1] == b"{" and (is_named or _FORMAT in head)
            data = head + text.read(len(head), file.size_bytes) if is_one else b""
    except OSError:
        return None  # said by whoever reads the others
    return data if _FORMAT in data else None


def _parsed(path: str, data: bytes) -> FoundManifest:
    try:
        document = json.loads(data, object_pairs_hook=keys_once)
        version = document.get("version") if isinstance(document, dict) else None
        if isinstance(version, int) and version > MANIFEST_VERSION:
            return FoundManifest(path, data, None, Refused.MANIFEST_OF_TOMORROW.of(path, version))
        return FoundManifest(path, data, _SaidOfCopy.model_validate(document))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        problem = f"not a manifest that this version knows ({where}: {first['msg']})"
    except (ValueError, RecursionError) as error:
        problem = f"not a whole manifest ({type(error).__name__})"
    return FoundManifest(path, data, None, Refused.MANIFEST_NOT_UNDERSTOOD.of(path, problem))


def manifest_problems(manifests: Sequence[FoundManifest], others: Sequence[SourceFile]) -> dict[str, list[Refusal]]:
    """By path of a manifest why it is not that of the files, each reason with the file's name; no file is opened.

    Args:
        manifests: those of a call.
        others: all other files of the call.
    """
    if not manifests:
        return {}
    sizes = {_place(file.path): file.size_bytes for file in others}
    names = {_place(file.path): file.path for file in others}
    folders = {manifest.folder for manifest in manifests}
    refusals: dict[str, list[Refusal]] = {}
    for manifest in manifests:
        named = manifest.by_place
        reasons = []
        if manifest.problem is not None:
            reasons.append(manifest.problem)
        if manifest.copy is not None:
            if len(named) < len(manifest.copy.files):
                reasons.append(Refused.NAMED_TWICE.of(manifest.path))
            reasons += _misfits(manifest, named, sizes)
            unnamed = [
                names[place] for place in sizes if place not in named and _nearest(place, folders) == manifest.folder
            ]
            if unnamed and not manifest.copy.is_complete:
                reasons.append(Refused.CUT_SHORT.of(manifest.path, count(len(unnamed), "file")))
            else:
                reasons += map(Refused.NOT_NAMED.of, unnamed)
        if reasons:
            refusals[manifest.path] = sorted(reasons, key=str)
    return refusals


def _nearest(place: str, folders: set[str]) -> str | None:
    """The folder of the manifest that a file is in the care of: the innermost one."""
    folder = os.path.dirname(place)  # noqa: PTH120 a URI is no path
    while folder not in folders:
        place, folder = folder, os.path.dirname(folder)  # noqa: PTH120
        if place == folder:
            return None
    return folder


def _misfits(manifest: FoundManifest, named: Mapping[str, _SaidOfFile], sizes: Mapping[str, int]) -> Iterator[Refusal]:
    for place, file in named.items():
        shown = os.path.join(os.path.dirname(manifest.path), file.path)  # noqa: PTH120
        size = sizes[place] if place in sizes else _size_of(place)
        if size is None:
            yield Refused.NOT_THERE.of(shown)
        elif file.size_bytes is not None and size != file.size_bytes:
            yield Refused.OTHER_SIZE.of(shown, size, file.size_bytes)


def _size_of(place: str) -> int | None:
    stored = places.place_of(place)
    if stored is not None:
        try:
            stored_file = store_of(stored).head(stored.key)
        except StoreError as error:
            raise InputError([f"{place}: {error}"]) from error
        return None if stored_file is None else stored_file.version.size_bytes
    try:
        return os.stat(place).st_size  # noqa: PTH116
    except OSError:
        return None


def manifest_inputs(
    manifests: Sequence[FoundManifest],
    others: Sequence[SourceFile],
    inputs: Sequence[PlannedInput],
    *,
    is_verified: bool,
) -> tuple[list[PlannedInput], list[str]]:
    """Each manifest as an input, and all reasons why one is not that of the files; such a one says nothing.

    Args:
        manifests: those of a call.
        others: all other files of the call.
        inputs: what those are.
        is_verified: the sums of segments of logs are looked at as well, which else are not read whole.
    """
    if not manifests:
        return [], []
    problems = manifest_problems(manifests, others)
    of_place = {_place(path): plan for plan in inputs for path in (plan.path, *plan.same_paths)}
    given = {_place(file.path): file for file in others}
    files = []
    for manifest in manifests:
        wrong = _wrong_sums(manifest, of_place, given, is_verified=is_verified) if manifest.path not in problems else []
        if wrong:
            problems[manifest.path] = wrong
        files.append(_input(manifest, of_place, given, problems.get(manifest.path)))
    return files, [str(reason) for reasons in problems.values() for reason in reasons]


def _wrong_sums(
    manifest: FoundManifest, of_place: Mapping[str, PlannedInput], given: Mapping[str, SourceFile], *, is_verified: bool
) -> list[Refusal]:
    summed = [
        (given[place], of_place[place].path, file.sha256.lower())
        for place, file in manifest.by_place.items()
        if file.sha256 is not None
        and place in of_place
        and place in given
        and (is_verified or _is_read_whole(of_place[place]))
    ]
    with ThreadPoolExecutor(_SUMS_AT_ONCE) as pool:  # hashing lets other threads run
        sums = [*pool.map(_sum_of, (file for file, _, _ in summed))]
    return [
        Refused.OTHER_SUM.of(path)
        for (_, path, stated), checksum in zip(summed, sums, strict=True)
        if stated != checksum
    ]


def _is_read_whole(plan: PlannedInput) -> bool:
    """Of a segment of a log only the headers of batches are read, unless it is of the state; see `log_dir.survey`."""
    return not any(s.kind == LOG and s.grammar in BINARY_GRAMMARS for s in plan.sections)


def _sum_of(file: SourceFile) -> str:
    digest = hashlib.sha256()
    try:
        with Text(place_of(file.path), None, file.version) as text:
            for start in range(0, file.size_bytes, _SUMMED_BYTES):
                digest.update(text.read(start, min(start + _SUMMED_BYTES, file.size_bytes)))
    except OSError:
        return ""  # as if it were another file
    return digest.hexdigest()


def _input(
    manifest: FoundManifest,
    of_place: Mapping[str, PlannedInput],
    given: Iterable[str],
    problems: Sequence[Refusal] | None,
) -> PlannedInput:
    files = tuple(_copied(place, file, of_place.get(place), given) for place, file in manifest.by_place.items())
    # What it says is of these contents: beside others it is another input.
    ids = "".join(f"{file.path} {file.input_id} {file.is_given}\n" for file in files)
    digest = blake3(manifest.data + ids.encode(errors="surrogateescape")).digest(DIGEST_BYTES)
    copy = manifest.copy
    return PlannedInput(
        path=manifest.path,
        input_id=digest.hex(),
        kind=None if problems or copy is None else KIND,
        grammar=None if copy is None else str(copy.version),
        size_bytes=len(manifest.data),
        text_bytes=len(manifest.data),
        problem=f"byte 0: {problems[0]}" if problems else None,
        refused=tuple(dict.fromkeys(refusal.kind for refusal in problems or ())),
        sections=(),
        manifest=None
        if problems or copy is None
        else Manifest(manifest.path, copy.clock, copy.cluster_id, copy.broker_id, copy.is_complete, files),
    )


def _copied(place: str, file: _SaidOfFile, plan: PlannedInput | None, given: Iterable[str]) -> CopiedFile:
    stated = {name: getattr(file, name) for name in CopiedFile._fields if name in _SaidOfFile.model_fields}
    return CopiedFile(input_id=None if plan is None else plan.input_id, is_given=place in given, **stated)

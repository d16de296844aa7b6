"""Manifests of copied folders, as the copy kit would have written them: the logs first, the state last."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

BEGAN_MS, STEP_MS, PAUSE_MS = 1_800_000_000_000, 100, 10_000
BROKER_ID = 1
NAME = "txn-capture.json"
_FOLDER = re.compile(r"(.+)-(\d+)")
_EPOCH = re.compile(r"(?m)^(\d+) \d+$")

Entry = dict[str, Any]


def manifest_of(
    folder: Path,
    *,
    changed: Callable[[Entry], Entry] = lambda entry: entry,
    order: Callable[[Path], int] | None = None,
    **said: Any,
) -> Path:
    """Write the manifest of all files of a folder, and return its path.

    Args:
        folder: the copy, off a broker that leads all of its partitions, with times of that broker's clock.
        changed: what is said of a file instead.
        order: files with a lower number were copied first, with a pause before those of the next.
        said: what is said of the copy instead.
    """
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != NAME)
    place = order or (lambda path: int(path.parent.name.startswith("__transaction_state-")))
    files.sort(key=lambda path: (place(path), str(path)))
    entries = [changed(entry) for entry in _entries(folder, files, place)]
    whole = {
        "format": "txn-capture",
        "version": 1,
        "made_by": "a test",
        "clock": "broker",
        "cluster_id": None,
        "broker_id": BROKER_ID,
        "began_ms": BEGAN_MS,
        "ended_ms": max((entry["ended_ms"] or 0 for entry in entries), default=BEGAN_MS),
        "is_complete": True,
        "files": entries,
    }
    path = folder / NAME
    path.write_text(json.dumps(whole | said), encoding="utf-8")
    return path


def _entries(folder: Path, files: Iterable[Path], place: Callable[[Path], int]) -> Iterable[Entry]:
    for number, path in enumerate(files):
        at_ms = BEGAN_MS + number * STEP_MS + place(path) * PAUSE_MS
        found = _FOLDER.fullmatch(path.parent.name)
        topic, partition = (found[1], int(found[2])) if found and path.parent != folder else (None, None)
        yield {
            "path": str(path.relative_to(folder)),
            "sequence": number,
            "topic": topic,
            "topic_id": None,
            "partition": partition,
            "leader_id": BROKER_ID if topic else None,
            "leader_epoch": _epoch(path.parent) if topic else None,
            "is_leader_confirmed": topic is not None,
            "is_end_confirmed": topic is not None,
            "began_ms": at_ms,
            "ended_ms": at_ms + STEP_MS,
            "began_monotonic_ms": at_ms - BEGAN_MS,
            "first_offset": None,
            "end_offset": None,
            "size_bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }


def _epoch(folder: Path) -> int | None:
    checkpoint = folder / "leader-epoch-checkpoint"
    epochs = [int(e) for e in _EPOCH.findall(checkpoint.read_text().partition("\n")[2])] if checkpoint.is_file() else []
    return max(epochs, default=None)

"""What the warehouses of earlier versions were made of, and what is audited into them.

`east` is the first capture of a real cluster. `compacted` is the same with a batch taken out of a partition of
`__transaction_state`, as compaction takes it: a problem of that partition's log, and nothing that a verdict rests on.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from tests.acceptance.captures import CASES

if TYPE_CHECKING:
    from pathlib import Path

FIRST, LATER = (CASES / "kafka-4.2" / name for name in ("capture-1", "capture-2"))
EAST, COMPACTED = "east", "compacted"
STATE_OF_CAPTURE = "transaction-state/n1.__transaction_state-0.txt"
_BATCH = re.compile(r"^baseOffset: .* size: (\d+) .*\n(?:\| .*\n)+", re.MULTILINE)
_POSITION = re.compile(r" position: (\d+) ")


def compacted(source: Path, folder: Path) -> Path:
    """A copy of a capture, below `folder`, without the second batch of one partition of `__transaction_state`."""
    copy = folder / COMPACTED
    for part in ("segments", "transaction-state"):
        shutil.copytree(source / part, copy / part)
    file = copy / STATE_OF_CAPTURE
    text = file.read_text(encoding="utf-8")
    _, gone, *_ = _BATCH.finditer(text)
    size = int(gone[1])
    behind = _POSITION.sub(lambda found: f" position: {int(found[1]) - size} ", text[gone.end() :])
    file.write_text(text[: gone.start()] + behind, encoding="utf-8")
    return copy


def parts_of(capture: Path) -> list[str]:
    """The folders of a capture that are audited."""
    parts = ("segments", "transaction-state", "producer-snapshots")
    return [str(capture / part) for part in parts if (capture / part).exists()]

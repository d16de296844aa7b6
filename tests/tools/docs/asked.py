"""What is typed and printed in docs/symptoms.md and questions.md: commands run on the real captures."""

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.tools.captures import PARAMETERS, SEGMENTS
from tests.tools.program import program
from tests.tools.repository import CASES

_SETTINGS = [
    *("--transaction-state-partitions", str(PARAMETERS["transaction_state_partitions"])),
    *("--max-clock-skew-ms", str(PARAMETERS["max_clock_skew_ms"])),
]
DEMO = ("kafka-4.2/capture-1", SEGMENTS)
EDGE = ("kafka-4.2-edge/capture-2", (*SEGMENTS, "producer-snapshots", "group-offsets"))
DELETED = ("kafka-4.2-edge/capture-2", ("log-dirs",))
ENDED = ("kafka-4.2-tv2/capture-1", SEGMENTS)
BUSY = ("kafka-4.3-busy/capture-1", ("log-dirs",))
TIERED = ("kafka-4.3-tiered/capture-1", ("log-dirs",))
_OF_TIERED = (
    *("--state-copied-last", "--no-records-lost"),
    *("--topic-config", str(CASES / "kafka-4.3-tiered/capture-1/topics.txt")),
)

Capture = tuple[str, tuple[str, ...]]


class Asked(NamedTuple):
    """One command of a page, the capture that it asks about, and the code that it ends with.

    `shown` are the labels of the paragraphs that are shown below the first line; dots stand for the others.
    `settings` are those of its audit, beside those of every capture.
    """

    name: str
    capture: Capture
    command: str
    exit_code: int = 0
    shown: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()


ASKED = (
    Asked("stuck-lag", DEMO, "explain orders-0:161"),
    Asked("poison-message", DEMO, "explain orders-0:126", 0, ("reader", "blocked")),
    Asked("lag-of-one", ENDED, "explain orders-0:32"),
    Asked("empty-polls", DEMO, "explain orders-0:118", 0, ("reader", "run")),
    Asked("compaction", BUSY, "explain __transaction_state-1:30000"),
    Asked("beyond-the-end", DEMO, "explain orders-0:205", 3, ("reader", "missing")),
    Asked("out-of-range", DELETED, "explain trades-0:100", 0, ("reader", "blocked")),
    Asked("unstable-offsets", EDGE, "explain --group billing-readers"),
    Asked("whose-is-it", DEMO, "explain --producer-id 1002", 0, ("id", "state", "open", "owner", "ends")),
    Asked("when-it-ends", DEMO, "explain --transactional-id inventory-sync", 0, ("state", "open", "ends", "fence")),
    Asked("disk-fills", EDGE, "explain --topic accounts", 0, ("blocks", "costs")),
    Asked("tiered", TIERED, "explain --topic clicks", 0, ("blocks", "costs"), _OF_TIERED),
    Asked("fenced", ENDED, "ended --outcome ABORT"),
    Asked("statistics", EDGE, "ended --by application"),
)


def asked_outputs(folder: Path) -> dict[str, str]:
    """Each command as it is typed, and what it prints, by the name of the example; warehouses are made in a folder."""
    return {asked.name: _shown(asked, _answer(folder, asked)) for asked in ASKED}


def _shown(asked: Asked, printed: str) -> str:
    if asked.shown:
        label = rf"^   (?:{'|'.join(asked.shown)}) .*\n(?:^ {{12}}.*\n)*"
        first = f"{printed.strip()}\n\n".partition("\n\n")[0] + "\n"  # of several transactions
        kept = "".join(re.findall(label, first, re.MULTILINE))
        printed = f"{first.splitlines()[0]}\n{kept}...\n"
    return f"$ txn-analysis {asked.command}\n{printed}"


def _answer(folder: Path, asked: Asked) -> str:
    case, parts = asked.capture
    place = folder / f"{case}-{'-'.join(parts)}".replace("/", "-")
    is_new = not place.exists()
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(place):
        if is_new:
            paths = [str(CASES / case / part) for part in parts]
            _run(["audit", *paths, *_SETTINGS, *asked.settings, "--exit-zero", "--quiet"])
        code, printed = _run(shlex.split(asked.command))
    assert code == asked.exit_code, f"{asked.command}: {code}"
    return printed


def _run(words: Iterable[str]) -> tuple[int, str]:
    with _plain_environment():
        return program(*words)[:2]


@contextlib.contextmanager
def _plain_environment() -> Iterator[None]:
    """No setting of this machine's decides what is printed."""
    kept = {
        name: os.environ.pop(name)
        for name in [*os.environ]
        if name.startswith("TXN_ANALYSIS_") and name != "TXN_ANALYSIS_JARS"
    }
    try:
        yield
    finally:
        os.environ.update(kept)

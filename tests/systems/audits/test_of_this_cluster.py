"""Nothing hangs unless the state is shown to be the logs' own: by a late end marker, or by one `cluster.id`."""

from pathlib import Path
from typing import Any

import pytest

from tests.tools.captures import TRUE_WORDS, by_place, rows_of, run_audit
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.settings import Settings

CAPTURE = CASES / "kafka-4.2" / "capture-1"
META = (CAPTURE / "log-dirs" / "n1" / "meta.properties").read_bytes()
ORPHAN = ("orders", 2, 987654321)
WORDS: dict[str, Any] = dict(TRUE_WORDS)


def cut_behind_the_orphan(folder: Path) -> list[str]:
    """The dump of one log, to the end of its open data, and the state: no end marker is as late as the data."""
    lines = (CAPTURE / "segments" / "n1.orders-2.txt").read_bytes().splitlines(keepends=True)
    (batch,) = (n for n, line in enumerate(lines) if b"producerId: 987654321" in line)
    stop = next(n for n, line in enumerate(lines) if n > batch and line.startswith(b"baseOffset"))
    places = folder / "logs", folder / "state"
    for place in places:
        place.mkdir()
    (places[0] / "orders-2.txt").write_bytes(b"".join(lines[:stop]))
    for file in (CAPTURE / "transaction-state").iterdir():
        (places[1] / file.name).write_bytes(file.read_bytes())
    return [*map(str, places)]


def of_the_orphan(paths: list[str], warehouse: str, **settings: Any) -> dict[str, Any]:
    return by_place(rows_of(run_audit(None, warehouse, paths, **WORDS | settings)))[ORPHAN]


def test_without_a_later_end_marker_the_state_may_be_anothers(warehouse: str, tmp_path: Path) -> None:
    found = of_the_orphan(cut_behind_the_orphan(tmp_path), warehouse)
    assert (found["verdict"], found["rule"]) == ("inconclusive", "state_incomplete")
    assert "Copy meta.properties beside both" in found["missing_evidence"][0]


@pytest.mark.parametrize("beside", ["both", "the logs", "the state"])
def test_meta_properties_beside_both_shows_whose_state_it_is(warehouse: str, tmp_path: Path, beside: str) -> None:
    """Equal files are one input; each counts where it lies."""
    paths = cut_behind_the_orphan(tmp_path)
    for path, name in zip(paths, ("the logs", "the state"), strict=True):
        if beside in {"both", name}:
            (tmp_path / path / "meta.properties").write_bytes(META)
    found = of_the_orphan(paths, warehouse)
    assert found["rule"] == ("unknown_producer" if beside == "both" else "state_incomplete")


def test_logs_and_state_may_come_in_two_calls(warehouse: str, tmp_path: Path) -> None:
    logs, state = cut_behind_the_orphan(tmp_path)
    for path in (logs, state):
        (tmp_path / path / "meta.properties").write_bytes(META)
    settings = Settings(warehouse=warehouse, capture="night")
    pipeline.ingest(no_session, [logs], settings)
    assert of_the_orphan([state], warehouse, capture="night")["rule"] == "unknown_producer"


def test_meta_properties_that_is_copied_afterwards_settles_it_in_the_same_capture(
    warehouse: str, tmp_path: Path
) -> None:
    paths = cut_behind_the_orphan(tmp_path)
    again: dict[str, Any] = {"capture": "tonight", "cluster": "copied afterwards"}
    assert of_the_orphan(paths, warehouse, **again)["rule"] == "state_incomplete"
    for stated, expected in ((META, "hanging"), (META.replace(b"cluster.id=", b"cluster.id=not-"), "inconclusive")):
        for path in paths:
            (tmp_path / path / "meta.properties").write_bytes(stated)
        assert of_the_orphan(paths, warehouse, **again)["verdict"] == expected

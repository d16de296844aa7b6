"""The whole corpus through one real audit: nothing crashes it, and only what hangs is said to hang."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.proof.hostile.numbers import out_of_range
from tests.proof.hostile.scenes import SETTINGS, TOOLS, honest, key_of
from tests.proof.hostile.texts import bad_json, odd_payloads, slow_lines
from tests.tools.captures import rows_of, run_audit
from tests.tools.sessions import no_session, opened
from tests.tools.table_rows import listed
from txn_analysis.errors import InputError
from txn_analysis.tables import INPUTS, REJECTS

CLOCKS = (
    b"1700000000000000",  # microseconds
    b"1700000000000000000",
    b"9223372036854775807",
    b"-9223372036854775808",
)


def write(folder: Path, files: Mapping[str, bytes]) -> str:
    folder.mkdir()
    for number, data in enumerate(files.values()):
        (folder / f"{number}.txt").write_bytes(data)
    return str(folder)


def test_files_of_all_kinds_of_hostility_are_read_or_named(warehouse: str, tmp_path: Path) -> None:
    scene = honest(TOOLS["4.2 payload"])
    odd = odd_payloads() | slow_lines(20_000) | dict(list(out_of_range())[::97])
    # No forged state: what is broken in the state is broken for all.
    odd = {name: text for name, text in odd.items() if b"__transaction_state" not in text and b"Dumping" in text}
    with pytest.raises(InputError):
        run_audit(no_session, warehouse, [write(tmp_path / "odd", odd)])
    folders = [str(tmp_path / "odd"), write(tmp_path / "scene", scene.files)]
    report = run_audit(no_session, warehouse, folders, cluster="odd", skip_unrecognised=True, **SETTINGS)
    rows = rows_of(report)
    hanging = {key_of(row) for row in rows if row["verdict"] == "hanging" and row["topic"] in {"clicks", "payments-eu"}}
    assert hanging == set()
    stored = opened(warehouse)
    inputs = {row["input_id"]: row for row in listed(stored, INPUTS, cluster=["odd"])}
    rejected = dict.fromkeys(inputs, 0)
    for row in listed(stored, REJECTS, input_id=[*inputs]):
        rejected[row["input_id"]] += row["length_bytes"]
        assert row["length_bytes"] > 0
        assert row["offset_bytes"] + row["length_bytes"] <= inputs[row["input_id"]]["text_bytes"]
    assert {i: (row["parsed_bytes"], row["rejected_bytes"]) for i, row in inputs.items()} == {
        i: (row["text_bytes"] - rejected[i], rejected[i]) for i, row in inputs.items()
    }


def test_a_hostile_state_leaves_no_verdict(warehouse: str, tmp_path: Path) -> None:
    scene = honest(TOOLS["4.2 payload"])
    files = scene.files | bad_json()
    folder = write(tmp_path / "files", files)
    report = run_audit(no_session, warehouse, [folder], cluster="hostile state", skip_unrecognised=True, **SETTINGS)
    assert scene.wrong(rows_of(report)) == []


def test_no_clock_is_too_far_off(warehouse: str, tmp_path: Path) -> None:
    """Clients may send any time, and a damaged dump may show any broker's time."""
    scene = honest(TOOLS["4.2 payload"])
    files = dict(scene.files)
    for number, clock in enumerate(CLOCKS):
        for name in ("orders-0.txt", "clicks-0.txt"):
            folder = b"far.%s-%d/" % (name[:-6].encode(), number)
            text = scene.files[name].replace(b"Dumping " + name[:-4].encode() + b"/", b"Dumping " + folder)
            files[f"{number}.{name}"] = _with_clock(text, clock)
    paths = [write(tmp_path / "files", files)]
    report = run_audit(no_session, warehouse, paths, cluster="far clocks", skip_unrecognised=True, **SETTINGS)
    rows = rows_of(report)
    assert {row["topic"] for row in rows} >= {"far.orders", "far.clicks", "orders"}
    assert scene.wrong([row for row in rows if not row["topic"].startswith("far.")]) == []


def _with_clock(text: bytes, clock: bytes) -> bytes:
    words = text.split(b"Time: ")
    return b"Time: ".join([words[0], *(clock + word[word.find(b" ") :] for word in words[1:])])


def test_a_file_whose_name_is_not_utf8_is_read_and_its_name_shown(warehouse: str, tmp_path: Path) -> None:
    folder = Path(write(tmp_path / "names", honest(TOOLS["4.2 payload"]).files))
    (folder / "0.txt").rename(folder / os.fsdecode(b"bad\xff.txt"))
    (folder / os.fsdecode(b"odd\xfe.txt")).write_text("neither a dump nor an export")
    report = run_audit(no_session, warehouse, [str(folder)], cluster="names", skip_unrecognised=True, **SETTINGS)
    assert {item.path.rpartition("/")[2] for item in report.inputs} >= {r"bad\xff.txt", r"odd\xfe.txt"}

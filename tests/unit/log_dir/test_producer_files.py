"""Producer snapshots and transaction indexes: a damaged one is never taken for one without producers."""

import struct
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.tools.bodies import Body, plain_rows
from tests.tools.cases import cases
from tests.tools.dump_texts import plan as plan_of_text
from tests.tools.forms.broker import replay
from tests.tools.forms.dump_writer import Tool, snapshot_section
from tests.tools.forms.history import histories
from tests.tools.forms.model import History
from tests.tools.log_dirs.encoder import encoded, snapshot_bytes
from tests.tools.log_dirs.reading import plans
from tests.tools.log_evidence import MemoryText
from tests.unit.log_dir.test_segments import data
from txn_analysis.reading.log_dir.producer_files import (
    read_snapshot_file,
    read_snapshot_section,
    read_txnindex_file,
    snapshot_problem,
)
from txn_analysis.reading.text.window import Reject

ENTRY = struct.Struct(">hqqqq")


@given(histories(max_steps=15))
def test_a_snapshot_has_the_rows_of_its_dump(history: History) -> None:
    producers = replay(history.batches).snapshot()
    text = snapshot_section("orders-1", 17, producers, Tool()).encode()
    (section,) = plan_of_text(text).sections
    body: Any = Body(snapshot_bytes(producers), file_base_offset=17)
    parts = read_snapshot_file(body, body), read_snapshot_section(MemoryText(text), section)
    of_file, of_dump = (sorted(plain_rows([*part]), key=repr) for part in parts)
    assert of_file == of_dump


def whole_snapshot(producers: int = 3) -> bytes:
    history = [data(k, producer=k) for k in range(producers)]
    return snapshot_bytes(replay(history).snapshot())


@given(st.data())
def test_no_damaged_snapshot_is_believed(drawn: st.DataObject) -> None:
    content = whole_snapshot()
    at = drawn.draw(st.integers(0, len(content) - 1))
    flipped = content[:at] + bytes([content[at] ^ drawn.draw(st.integers(1, 255))]) + content[at + 1 :]
    for damaged in (flipped, content[:at], content + bytes(at + 1)):
        assert snapshot_problem(damaged) is not None
        body: Any = Body(damaged)
        (item,) = read_snapshot_file(body, body)
        assert isinstance(item, Reject)


@cases(
    "content why",
    {
        "damaged": (whole_snapshot()[:-1] + b"x", "checksum is wrong"),
        "cut": (whole_snapshot()[:-46], "cut short"),
        "no-head": (b"\0\1", "cut short"),
        "newer": (b"\0\2" + whole_snapshot()[2:], "version 2"),
    },
)
def test_a_damaged_snapshot_beside_a_log_is_named_and_is_no_section(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(encoded(data(0)))
    (tmp_path / "orders-0" / f"{1:020}.snapshot").write_bytes(content)
    snapshot = plans(tmp_path)[-1]
    assert (snapshot.kind, snapshot.sections, snapshot.problem) == (None, (), None)
    ((start, end, reason),) = snapshot.rejects
    assert (start, end) == (0, len(content))
    assert why in reason


def txnindex(content: bytes) -> list[Any]:
    body: Any = Body(content)
    return list(read_txnindex_file(body, body))


def test_entries_of_a_transaction_index() -> None:
    good = ENTRY.pack(0, 5, 10, 20, 21)
    rows = txnindex(good + ENTRY.pack(1, 5, 10, 20, 21) + ENTRY.pack(0, 5, 20, 10, 21) + good)
    place = {"topic": "orders", "partition": 1}
    entry = place | {"producer_id": 5, "first_offset": 10, "last_offset": 20, "last_stable_offset": 21}
    assert plain_rows(rows) == [entry] * 2
    assert [(r.offset_bytes, r.length_bytes) for r in rows if isinstance(r, Reject)] == [(34, 34), (68, 34)]


def test_half_an_entry_at_the_end_of_an_index_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(encoded(data(0)))
    (tmp_path / "orders-0" / f"{0:020}.txnindex").write_bytes(ENTRY.pack(0, 5, 10, 20, 21) + b"\0\0\0")
    index = plans(tmp_path)[-1]
    assert index.rejects == ((34, 37, "half an entry at the end"),)
    assert index.sections[0].text_end_bytes == 34

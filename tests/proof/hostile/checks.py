"""What holds of every text, whatever is in it."""

from collections.abc import Iterator
from typing import Any

from tests.proof.hostile.reference import batch_fields
from tests.tools.inputs import RANGE_BYTES, InputReader, ReadInput
from txn_analysis.reading.grammar.lines import Lines, read_batch_lines
from txn_analysis.tables import ABORTED_TRANSACTIONS, LOG_BATCHES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES
from txn_analysis.tables.schema import BIGINT, INT

Row = dict[str, Any]

_INT64_MAX = 2**63 - 1
_MAX = {INT: 2**31 - 1, BIGINT: _INT64_MAX}
_TYPES = {
    field.name: field.type
    for table in (ABORTED_TRANSACTIONS, LOG_BATCHES, PRODUCER_SNAPSHOTS, TRANSACTION_STATES)
    for field in table.arrow_schema
}
_MAY_BE_NEGATIVE = {"transactional_id_hash"}
SMALL_RANGE_BYTES = 4096


def problems_of(reader: InputReader, text: bytes, range_bytes: int = RANGE_BYTES) -> list[str]:
    """What is wrong with how a text was read, in words; an exception is left to the caller.

    A byte is parsed or rejected, never both, numbers fit their columns and are NULL or not negative, and batch lines
    are those that the second reader finds.
    """
    found = reader.read(text, range_bytes)
    return [*_unaccounted(found), *_out_of_range(found), *_disagreements(text)]


def _unaccounted(found: ReadInput) -> Iterator[str]:
    if found.unaccounted_bytes:
        yield f"{found.unaccounted_bytes} bytes are not accounted for"
    rejected = sum(r.length_bytes for r in found.rejects)
    if not 0 <= rejected <= found.planned.text_bytes:
        yield f"{rejected} bytes of {found.planned.text_bytes} are rejected"
    for section in found.planned.sections:
        if not 0 <= section.text_start_bytes <= section.text_end_bytes <= found.planned.text_bytes:
            yield f"section {section.index} lies outside of the text"


def _out_of_range(found: ReadInput) -> Iterator[str]:
    rows = [*(row for batches in found.batches for row in batches.rows().to_pylist()), *found.records]
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int) and not isinstance(value, bool) and name not in _MAY_BE_NEGATIVE:
                high = _MAX[_TYPES[name]]
                if not 0 <= value <= high:
                    yield f"{name} is {value}"
    for section in found.planned.sections:
        if not 0 <= section.file_base_offset < _INT64_MAX or not 0 <= section.torn_bytes <= _INT64_MAX:
            yield f"section {section.index} has numbers out of range"


def _disagreements(text: bytes) -> Iterator[str]:
    """Lines that one reader takes for a batch line and the other does not; legacy formats are only the product's."""
    lines = Lines.of(text)
    read = read_batch_lines(lines)
    ours = {
        int(lines.starts[line]): (int(base), int(last))
        for line, base, last, magic in zip(
            read.line, *(read.columns[n] for n in ("base_offset", "last_offset", "magic")), strict=True
        )
        if magic == 2
    }
    theirs = {at: (f["baseOffset"], f["lastOffset"]) for at, f in _reference_lines(text)}
    for at in sorted(ours.keys() | theirs.keys()):
        if ours.get(at) != theirs.get(at):
            yield f"the line at byte {at} is {ours.get(at)}, and by the reference {theirs.get(at)}"


def _reference_lines(text: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    at = 0
    for line in text.split(b"\n"):
        fields = batch_fields(line) if line.startswith(b"baseOffset: ") else None
        if fields is not None:
            yield at, fields
        at += len(line) + 1

"""Many findings in memory: as columns, of which a record is made only while somebody looks at it.

What is asked of all of them (verdicts, places, times) is in columns; sentences, which are most of the bytes, are packed
some hundred rows at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from txn_analysis.columns.arrays import Array
from txn_analysis.columns.records import Record, batch_of, records_of
from txn_analysis.columns.values import packed, unpacked
from txn_analysis.tables.findings import FINDINGS, SINGLE_VALUES, Finding
from txn_analysis.verdict import Verdict

CAUSE_NAME = "cause_name"
SHOWN = (*SINGLE_VALUES, "impact", "evidence", "missing_evidence", "cause")
"""The columns that reports show: not which rules were asked, nor what would change the verdict."""

_UNPACKED = pa.schema([*(FINDINGS.arrow_schema.field(name) for name in SHOWN[:-3]), (CAUSE_NAME, pa.string())])
_PACKED = pa.schema([FINDINGS.arrow_schema.field(name) for name in SHOWN[-3:]])
_AT_ONCE = 512
_PLACE = ("topic", "partition", "txn_start_offset", "producer_id")
_BY_SEVERITY = pa.array([verdict.value for verdict in sorted(Verdict, key=attrgetter("severity"))], pa.string())


class _Pack(NamedTuple):
    """Some rows of `_PACKED`."""

    row_count: int
    rows: bytes


class _Content(NamedTuple):
    """Rows of `_UNPACKED`, and those of `_PACKED` beside them, some in each pack."""

    rows: pa.Table
    packs: tuple[_Pack, ...]

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _Content:
        """What is kept of a batch."""
        cause = batch["cause"]
        names = pc.if_else(pc.is_valid(cause), cause.field("name"), pa.scalar(None, pa.string()))
        rows = pa.table([*(batch[name] for name in _UNPACKED.names[:-1]), names], schema=_UNPACKED)
        beside = pa.table([batch[name] for name in _PACKED.names], schema=_PACKED)
        return cls(rows, tuple(_Pack(len(some), packed([some], _PACKED)) for some in beside.to_batches(_AT_ONCE)))


class FindingRows(Sequence[Finding]):
    """Findings in some order; those that are made of others share their columns."""

    def __init__(self, content: _Content, places: Array) -> None:
        self._content = content
        self._places = places

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> FindingRows:
        """Findings, in their order."""
        if isinstance(findings, FindingRows):
            return findings
        given = iter(findings)
        some = iter(lambda: list(islice(given, _AT_ONCE)), [])
        return cls.together([cls.of_batch(batch_of(Finding, part, FINDINGS.arrow_schema)) for part in some])

    @classmethod
    def of_batch(cls, rows: pa.RecordBatch) -> FindingRows:
        """Rows of `findings` that have at least the columns `SHOWN`, in their order; they are not kept as they are."""
        return cls(_Content.of(rows), np.arange(len(rows)))

    @classmethod
    def together(cls, parts: Sequence[FindingRows]) -> FindingRows:
        """All findings of some parts that hold nothing else, in their order."""
        rows = pa.concat_tables([_UNPACKED.empty_table(), *(part._content.rows for part in parts)]).combine_chunks()
        packs = tuple(pack for part in parts for pack in part._content.packs)
        return cls(_Content(rows, packs), np.arange(len(rows)))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Finding: ...

    @overload
    def __getitem__(self, place: slice) -> FindingRows: ...

    def __getitem__(self, place: int | slice) -> Finding | FindingRows:
        if isinstance(place, slice):
            return FindingRows(self._content, self._places[place])
        return self._made(self._places[[place]])[0]

    def __iter__(self) -> Iterator[Finding]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._made(self._places[start : start + _AT_ONCE])

    def __eq__(self, other: object) -> bool:
        is_alike = isinstance(other, Sequence) and len(other) == len(self)
        return is_alike and all(one == another for one, another in zip(self, other, strict=True))  # type: ignore[call-overload]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FindingRows({list(self)!r})"

    def _made(self, places: Array) -> list[Finding]:
        """Records of some rows; each pack that has some of them is opened once."""
        starts = np.cumsum([0, *(pack.row_count for pack in self._content.packs)])
        numbers = np.searchsorted(starts, places, "right") - 1
        by_pack = np.argsort(numbers, kind="stable")
        packs = [
            unpacked(self._content.packs[number].rows).take(places[numbers == number] - starts[number])
            for number in np.unique(numbers).tolist()
        ]
        beside = pa.concat_tables(packs).take(np.argsort(by_pack)) if packs else _PACKED.empty_table()
        rows = self._content.rows.take(places)
        columns = {name: (beside if name in _PACKED.names else rows)[name] for name in SHOWN}
        return records_of(Finding, pa.table(columns).combine_chunks())

    def records(self, kind: type[Record], *names: str) -> list[Record]:
        """Records of a kind that has some of the columns in which all findings are asked, or of `names` alone."""
        fields: tuple[str, ...] = names or kind._fields  # type: ignore[attr-defined]  # of every NamedTuple
        return records_of(kind, self._content.rows.select([*fields]).take(self._places).combine_chunks())

    def column(self, name: str) -> pa.Array:
        """One of these columns."""
        return self._content.rows[name].combine_chunks().take(pa.array(self._places))

    def where(self, is_wanted: Any) -> FindingRows:
        """Those of which a list or an array says that they are wanted."""
        return self.at(np.asarray(is_wanted, bool))

    def at(self, places: Any) -> FindingRows:
        """Those at some places, in their order."""
        return FindingRows(self._content, self._places[places])

    def followed_by(self, *others: FindingRows) -> FindingRows:
        """These, then others that were made of the same findings."""
        return FindingRows(self._content, np.concatenate([self._places, *(one._places for one in others)]))

    def of_verdict(self, *verdicts: Verdict) -> FindingRows:
        """Those that have one of some verdicts."""
        return self.where_one_of("verdict", [verdict.value for verdict in verdicts])

    def where_one_of(self, name: str, values: Iterable[Any]) -> FindingRows:
        """Those that have one of some values in a column."""
        column = self.column(name)
        return self.where(pc.is_in(column, pa.array([*values], column.type)).to_numpy(zero_copy_only=False))

    def worst_first(self, *numbers: Sequence[int]) -> FindingRows:
        """In the order of their verdicts, then of numbers, large ones first, then of topic, partition and start."""
        first = [pc.index_in(self.column("verdict"), _BY_SEVERITY), *(pa.array(each, pa.int64()) for each in numbers)]
        columns = {str(number): pc.negate(each) for number, each in enumerate(first)}
        keys = pa.table(columns | {name: self.column(name) for name in _PLACE})
        return self.at(pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names]).to_numpy())

    @property
    def verdict_counts(self) -> Counter[Verdict]:
        """How many have which verdict."""
        counted = self.column("verdict").value_counts()
        verdicts = map(Verdict, counted.field("values").to_pylist())
        return Counter(dict(zip(verdicts, counted.field("counts").to_pylist(), strict=True)))

    @property
    def worst(self) -> Verdict | None:
        """The worst verdict; None of nothing."""
        return max(self.verdict_counts, key=attrgetter("severity"), default=None)

    @property
    def topic_partitions(self) -> list[str]:
        """Their partitions in Kafka's spelling, each once, in the order of the first finding on each."""
        places = zip(self.column("topic").to_pylist(), self.column("partition").to_pylist(), strict=True)
        return [f"{topic}-{partition}" for topic, partition in dict.fromkeys(places)]

"""What is printed for programs: rows as `kafka-transactions.sh` prints its own, CSV, reports as JSON and metrics."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pydantic import TypeAdapter

from txn_analysis.columns.values import Json
from txn_analysis.judge.outcome import Outcome
from txn_analysis.tables import PartitionHealth
from txn_analysis.tables.finding_rows import CAUSE_NAME
from txn_analysis.text import SCHEMA_DIALECT, escape, formula_guard, json_in_ascii
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from txn_analysis.report.model import AuditReport, RunItem

Cell = str | int | float | list[str] | tuple[str, ...] | None
NONE = "None"
MINUS_ONE = "-1"


@dataclass(frozen=True)
class Column:
    """One column; `absent` is what Kafka's tool prints where there is no value.

    `of` is what `answer_of` shows of an item: an attribute, or what a function makes of it.
    """

    name: str
    absent: str = NONE
    of: str | Callable[[Any], Any] = ""


@dataclass(frozen=True)
class Answer:
    """Rows in the order of `columns`; None where something is unknown or does not apply.

    Text shows the first `text_columns` of them, by default all; and `text_rows`, where several rows are one there.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text_columns: int | None = None
    text_rows: tuple[tuple[Cell, ...], ...] | None = None

    def text(self) -> str:
        """Cells padded to their column and followed by a tab, the header first; ids are escaped, unlike Kafka's."""
        shown, rows = self.columns[: self.text_columns], self.rows if self.text_rows is None else self.text_rows
        table = [[column.name for column in shown]]
        table += [[_text_cell(value, c) for value, c in zip(row, shown, strict=False)] for row in rows]
        widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
        lines = ("".join(cell.ljust(width) + "\t" for cell, width in zip(row, widths, strict=True)) for row in table)
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        """A list of objects, ASCII only; lists stay lists."""
        return json.dumps(self._objects(), indent=2, ensure_ascii=True) + "\n"

    def ndjson(self) -> str:
        """The rows as objects, one a line; see `json`."""
        return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in self._objects())

    def csv(self) -> str:
        """RFC 4180 under a header; unknown is an empty cell, and no spreadsheet takes a text for a formula."""
        return csv_table([column.name for column in self.columns], self.rows)

    def _objects(self) -> list[dict[str, Cell]]:
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


def answer_of(columns: tuple[Column, ...], items: Iterable[Any], text_columns: int | None = None) -> Answer:
    """One row for each item, of what the columns show of it; arguments as the fields of `Answer`."""
    values = [attrgetter(column.of) if isinstance(column.of, str) else column.of for column in columns]
    return Answer(columns, tuple(tuple(value(item) for value in values) for item in items), text_columns)


def _text_cell(value: Cell, column: Column) -> str:
    if value is None:
        return column.absent
    return escape(",".join(value) if isinstance(value, list) else str(value))


def csv_table(names: Iterable[str], rows: Iterable[Iterable[Cell]], separator: str = ",") -> str:
    """RFC 4180 under a header; what is unknown is an empty cell, and no spreadsheet takes a text for a formula.

    Args:
        names: of the columns.
        rows: their values; a list or a tuple becomes one cell.
        separator: between the parts of such a cell.
    """
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(names)
    writer.writerows([_csv_cell(value, separator) for value in row] for row in rows)
    return table.getvalue()


def _csv_cell(value: Cell, separator: str) -> Cell:
    if isinstance(value, str):
        return formula_guard(value)
    if isinstance(value, bool):
        return str(value).lower()  # as in JSON
    # A negative number stays a number, and None is an empty cell.
    return formula_guard(separator.join(value)) if isinstance(value, (list, tuple)) else value


COLUMNS = (
    *("verdict", "rule", "topic", "partition", "producer_id", "producer_epoch", "txn_start_offset", "last_offset"),
    *("record_count", "idle_ms", "late_by_ms", "transactional_id", "coordinator_state", "blocks_partition"),
    *("evidence", "missing_evidence", "finding_id"),
)


def findings_csv(report: AuditReport) -> str:
    """One line a finding, worst first, under a header; see `csv_table`."""
    return csv_table(COLUMNS, map(attrgetter(*COLUMNS), report.findings), separator="; ")


def report_schema() -> dict[str, Json]:
    """The JSON schema of what `json_report` gives; of `schema_version`, the version that it describes."""
    from txn_analysis.report.model import SCHEMA_VERSION, AuditReport  # here: whoever prints rows needs no report

    schema = AuditReport.model_json_schema(mode="serialization")
    schema["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    return {"$schema": SCHEMA_DIALECT} | schema


_ROWS_AT_ONCE = 500


def _many() -> dict[str, Any]:
    """The fields of a report that have many items, and what they hold."""
    from txn_analysis.report.model import FindingItem, InputItem, PartitionItem

    return {
        "inputs": tuple[InputItem, ...],
        "partitions": tuple[PartitionItem, ...],
        "findings": tuple[FindingItem, ...],
    }


def json_report(report: AuditReport) -> Iterator[str]:
    """One JSON object and a newline, in parts; ASCII only, so that no id can reach a terminal unescaped."""
    many = {*_many()}
    whole = report.model_dump(mode="json", exclude=many)
    for place, name in enumerate(type(report).model_fields):
        yield f'{"," if place else "{"}\n  "{name}": '
        if name in many and getattr(report, name):
            yield from _indented_rows(report, name)
        else:
            yield _deeper(json.dumps(whole.get(name, []), indent=2))
    yield "\n}\n"


def _indented_rows(report: AuditReport, name: str) -> Iterator[str]:
    """The items of one field as a list, of which some are made at a time, by pydantic: it writes as `json.dumps` does.

    Only a number below 0.0001 is spelled otherwise, such as 5e-6 in place of 5e-06.
    """
    for number, (form, some) in enumerate(_some_at_a_time(report, name)):
        items = form.dump_json(some, indent=2).decode()[1:-2]  # without the list's own brackets
        yield f"{',' if number else '['}{_deeper(json_in_ascii(items))}"
    yield "\n  ]"


def _deeper(text: str) -> str:
    return text.replace("\n", "\n  ")  # words hold none: it is escaped in them


def findings_ndjson(report: AuditReport) -> Iterator[str]:
    """One line a finding, worst first, as `findings` of `json_report` holds it; nothing where nothing is open."""
    for form, some in _some_at_a_time(report, "findings"):
        yield from (json.dumps(finding) + "\n" for finding in form.dump_python(some, mode="json"))


def _some_at_a_time(report: AuditReport, name: str) -> Iterator[tuple[TypeAdapter[Any], tuple[Any, ...]]]:
    """Items of one field, and what writes them."""
    items, form = getattr(report, name), TypeAdapter[Any](_many()[name])
    for start in range(0, len(items), _ROWS_AT_ONCE):
        yield form, tuple(items[start : start + _ROWS_AT_ONCE])


MOST_PARTITIONS = 200
_MS_PER_S = 1000
_GAUGES = {
    "last_success_timestamp_seconds": "When an audit last succeeded.",
    "as_of_timestamp_seconds": "When the files were copied.",
    "could_not_tell": "1 where nothing is known to hang, but it could not be told of some open transaction.",
    "open_transactions_in_doubt": "Open transactions of which it could not be told whether they hang.",
    "partitions_with_late_transactions_count": "Partitions with a transaction idle for more than "
    "transaction.max.timeout.ms + 300000, by the clients' timestamps (PartitionsWithLateTransactionsCount).",
    "max_active_transaction_duration_seconds": "How long the longest open transaction has been open, by the brokers' "
    "clocks; not by clients' timestamps, which may differ (MaxActiveTransactionDuration).",
    "partitions_blocked": "Partitions that a transaction blocks which is not in progress, as the first line of the "
    "report counts them.",
    "open_transactions": "Open transactions, without what is accepted.",
    "hanging_by_cause": "Hanging ones, without what is accepted.",
    "accepted_transactions": "Open transactions that somebody accepted until a date.",
    "last_stable_offset_lag": "Offsets from the LSO to the end.",
    "partition_max_active_transaction_duration_seconds": "How long the longest open transaction of the partition has "
    "been open, by the brokers' clocks.",
    "partition_has_late_transaction": "1 with a late transaction, by the clients' timestamps.",
    "partitions_left_out": "Open ones beyond those with metrics of their own.",
}
_LABELS = {"open_transactions": ("verdict",), "hanging_by_cause": ("cause",)}


def prometheus_text(report: AuditReport, finished_ms: int) -> str:
    """The figures of one run as a Prometheus textfile, for the node exporter's textfile collector.

    One gauge a figure; times and durations in seconds. Names follow KIP-664's metrics of brokers, computed from the
    copied files. Labels are bounded: partitions with an open transaction, the worst ones first, and verdicts, causes
    and warnings by name; never a transactional id. The metrics of KIP-890's verification (`VerificationTimeMs`,
    `VerificationFailureRate`) live in brokers alone: no file tells them.

    Args:
        report: of the run.
        finished_ms: when the run succeeded, by this machine's clock; epoch milliseconds.
    """
    # A quarter of a second to import, which nothing else that is printed needs.
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry, values = CollectorRegistry(), _values(report, finished_ms)
    for name, about in _GAUGES.items():
        if (of := values[name]) is not None:
            labels = _LABELS.get(name, ("topic", "partition")) if isinstance(of, dict) else ()
            gauge = Gauge(f"txn_analysis_{name}", about, ("cluster", *labels), registry=registry)
            for names, value in of.items() if isinstance(of, dict) else [((), of)]:
                if value is not None:
                    gauge.labels(report.run.cluster, *names).set(value)
    return generate_latest(registry).decode("utf-8")


def _values(report: AuditReport, finished_ms: int) -> dict[str, float | dict[tuple[str, ...], float | None] | None]:
    """The value of each gauge, by its labels where it has any; None is not known."""
    from txn_analysis.judge.causes import CAUSES

    run, late, impact = report.run, _late_places(report), report.impact
    blocked = [item for item in report.partitions if item.open_transaction_count]
    blocked.sort(key=lambda item: (-(_lag(item) or 0), item.topic, item.partition))
    shown = {(item.topic, str(item.partition)): item for item in blocked[:MOST_PARTITIONS]}
    verdicts, causes = report.unaccepted.verdict_counts, Counter(report.hanging.column(CAUSE_NAME).to_pylist())
    return {
        "last_success_timestamp_seconds": finished_ms / _MS_PER_S,
        "as_of_timestamp_seconds": None if run.as_of_ms is None else run.as_of_ms / _MS_PER_S,
        "could_not_tell": report.outcome.answer is Outcome.COULD_NOT_TELL,
        "open_transactions_in_doubt": report.outcome.doubtful_count,
        "partitions_with_late_transactions_count": len(late),
        "max_active_transaction_duration_seconds": max(
            (_open_s(run, item) or 0 for item in report.partitions), default=0
        ),
        "partitions_blocked": None if impact is None else impact.partitions_blocked,
        "open_transactions": {(verdict.value,): verdicts[verdict] for verdict in Verdict},
        "hanging_by_cause": {(cause.name,): causes[cause.name] for cause in CAUSES},
        "accepted_transactions": len(report.counted_accepted),
        "last_stable_offset_lag": {place: _lag(item) for place, item in shown.items()},
        "partition_max_active_transaction_duration_seconds": {p: _open_s(run, item) for p, item in shown.items()},
        "partition_has_late_transaction": {place: item.topic_partition in late for place, item in shown.items()},
        "partitions_left_out": len(blocked) - len(shown),
    }


def _late_places(report: AuditReport) -> set[str]:
    """As `ProducerStateManager.hasLateTransaction`: the transaction that begins first, by its last timestamp alone."""
    firsts = report.findings.where(report.findings.column("impact").is_valid())
    is_late = pc.greater(firsts.column("idle_ms"), report.run.late_after_ms)
    has_time = pc.greater(firsts.column("last_timestamp_ms"), 0)
    return {*firsts.where(pc.fill_null(pc.and_(is_late, has_time), fill_value=False)).topic_partitions}


def _lag(item: PartitionHealth) -> int | None:
    if item.end_offset is None or item.last_stable_offset is None:
        return None
    return max(item.end_offset - item.last_stable_offset, 0)


def _open_s(run: RunItem, item: PartitionHealth) -> float | None:
    """Since the first append of the transaction that holds the last stable offset, which began first."""
    since_ms = None if item.impact is None else item.impact.hidden_since_ms
    return None if since_ms is None or run.as_of_ms is None else max(run.as_of_ms - since_ms, 0) / _MS_PER_S

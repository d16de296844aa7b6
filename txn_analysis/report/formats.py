"""What is printed for programs: answers as `kafka-transactions.sh` prints its own, CSV, and the report as JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txn_analysis.report.model import SCHEMA_VERSION, AuditReport
from txn_analysis.text.escape import escape, formula_guard

if TYPE_CHECKING:
    from collections.abc import Iterable

NONE = "None"
MINUS_ONE = "-1"


@dataclass(frozen=True)
class Column:
    """One column; `absent` is what Kafka's tool prints where there is no value."""

    name: str
    absent: str = NONE


@dataclass(frozen=True)
class Answer:
    """Rows in the order of `columns`; None where something is unknown or does not apply.

    Text shows the first `text_columns` of them, by default all.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    text_columns: int | None = None

    def text(self) -> str:
        """Cells padded to their column and followed by a tab, the header first; ids are escaped, unlike Kafka's."""
        shown = self.columns[: self.text_columns]
        table = [[column.name for column in shown]]
        table += [[_text_cell(value, c) for value, c in zip(row, shown, strict=False)] for row in self.rows]
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

    def _objects(self) -> list[dict[str, Any]]:
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]


def _text_cell(value: Any, column: Column) -> str:
    if value is None:
        return column.absent
    return escape(",".join(value) if isinstance(value, list) else str(value))


def csv_table(names: Iterable[str], rows: Iterable[Iterable[Any]], separator: str = ",") -> str:
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


def _csv_cell(value: Any, separator: str) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()  # as in JSON
    if isinstance(value, int | float):
        return value  # a negative number stays a number
    return formula_guard(separator.join(value) if isinstance(value, list | tuple) else str(value))


COLUMNS = (
    "verdict",
    "rule",
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "txn_start_offset",
    "last_offset",
    "record_count",
    "idle_ms",
    "late_by_ms",
    "transactional_id",
    "coordinator_state",
    "blocks_partition",
    "evidence",
    "missing_evidence",
    "finding_id",
)


def findings_csv(report: AuditReport) -> str:
    """One line a finding, worst first, under a header; see `csv_table`."""
    rows = ([getattr(finding, name) for name in COLUMNS] for finding in report.findings)
    return csv_table(COLUMNS, rows, separator="; ")


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def report_schema() -> dict[str, Any]:
    """The JSON schema of what `json_report` gives; of `schema_version`, the version that it describes."""
    schema = AuditReport.model_json_schema(mode="serialization")
    schema["properties"]["schema_version"]["const"] = SCHEMA_VERSION
    return {"$schema": _DIALECT} | schema


def json_report(report: AuditReport) -> str:
    """One JSON object and a newline; ASCII only, so that no id can reach a terminal unescaped."""
    return json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=True) + "\n"

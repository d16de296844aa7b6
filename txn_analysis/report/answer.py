"""A table of answers, printed as `kafka-transactions.sh` prints its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from txn_analysis.report.csv_table import csv_table
from txn_analysis.text.escape import escape

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
        table += [[_cell(value, c) for value, c in zip(row, shown, strict=False)] for row in self.rows]
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


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return column.absent
    return escape(",".join(value) if isinstance(value, list) else str(value))

"""Tables as CSV, the one way in which everything here is written that lists rows."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from txn_analysis.text.escape import formula_guard

if TYPE_CHECKING:
    from collections.abc import Iterable


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
    writer.writerows([_cell(value, separator) for value in row] for row in rows)
    return table.getvalue()


def _cell(value: Any, separator: str) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()  # as in JSON
    if isinstance(value, int | float):
        return value  # a negative number stays a number
    return formula_guard(separator.join(value) if isinstance(value, list | tuple) else str(value))

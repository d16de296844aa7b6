"""Prints the table reference as Markdown: `python -m txn_analysis.tables > docs/tables.md`."""

from __future__ import annotations

import sys

from txn_analysis.tables import ALL_TABLES, Table


def reference() -> str:
    """All tables with their grain, key, checks and columns."""
    intro = "# Tables\n\nMade from the schemas by `make docs`. Times are epoch milliseconds, UTC; unknown is NULL.\n"
    return "\n".join([intro, *(_section(table) for table in ALL_TABLES)])


def _section(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key)
    lines = [f"## {table.name}", "", f"One row is {table.grain}. Key: {key}.", ""]
    lines += ["| column | type | |", "|---|---|---|"]
    for column in table.columns:
        optional = "" if not column.nullable else " (may be NULL)"
        comment = column.comment.replace("|", "\\|")
        lines.append(f"| `{column.name}` | {column.type.simpleString()[:60]}{optional} | {comment} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(reference())

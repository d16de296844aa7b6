"""Prints the table reference as Markdown: `python -m txn_analysis.tables > docs/tables.md`."""

from __future__ import annotations

import sys

from txn_analysis.tables import ALL_TABLES, Table


def reference() -> str:
    """All tables with their grain, key, checks and columns."""
    intro = (
        "# Tables\n\nMade from the schemas by `make docs`. Times are epoch milliseconds, UTC; unknown is NULL.\n\n"
        "`inputs` and `runs` are written last, and commit what was written before them. An audit that was killed leaves"
        " rows\nin other tables that they do not name: whoever reads those tables without `txn-analysis` must leave"
        " such rows out.\n"
    )
    return "\n".join([intro, *(_section(table) for table in ALL_TABLES)])


def _section(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key)
    lines = [f"## {table.name}", "", f"One row is {table.grain}. Key: {key}. {table.committed_by}".rstrip(), ""]
    lines += ["| column | type | |", "|---|---|---|"]
    for column in table.columns:
        optional = "" if not column.nullable else " (may be NULL)"
        comment = column.comment.replace("|", "\\|")
        lines.append(f"| `{column.name}` | {column.type.simpleString()[:60]}{optional} | {comment} |")
    if table.checks:
        lines += ["", "Delta refuses a row that breaks one of these:", ""]
        lines += [f"* `{name}`: `{check.sql}`" for name, check in table.checks.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(reference())

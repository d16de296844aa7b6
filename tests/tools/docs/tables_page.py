"""The table reference as Markdown: docs/tables.md of the site."""

import pyarrow as pa

from txn_analysis.tables import ALL_TABLES, Table
from txn_analysis.tables.schema import BIGINT, BOOLEAN, INT

ENDED_IN_A_RUN = """\
SELECT ended.* FROM ended_transactions AS ended
LEFT SEMI JOIN (SELECT explode(linked_pieces) AS piece FROM partition_health WHERE run_id = 'RUN')
ON struct(ended.ingest_id, ended.input_id, ended.section_index, ended.first_position) = piece
UNION ALL
SELECT * FROM ended_transactions WHERE ingest_id = 'RUN'
"""
"""Spark SQL for the rows of `ended_transactions` that are those of the run RUN."""
_WORDS = {INT: "int", BIGINT: "bigint", BOOLEAN: "boolean"}


def reference() -> str:
    """All tables with their grain, key, checks and columns."""
    intro = (
        "# Tables\n\nMade from the schemas by `make site`. Times are epoch milliseconds, UTC; unknown is NULL.\n\n"
        "`inputs` and `runs` are written last, and commit what was written before them. An audit that was killed leaves"
        " rows\nin other tables that they do not name: whoever reads those tables without `txn-analysis` must leave"
        " such rows out.\n\n"
        "Tables only grow: a later version may add tables and columns, and renames or removes none. A column that was"
        " added is NULL in\nrows of before; the first write of a version that knows it adds it to Delta's schema. A"
        " warehouse that 1.0.0 wrote is read,\naudited into and pruned ([0130](decisions.md#0130-tables-only-grow))."
        " The property `txn-analysis.format` of each table is 5;\na warehouse with another number, or none, is"
        " refused. Rows of `inputs` have the number of their reading: what is given again is read again where today's"
        " is another,\nand what an earlier one believed too much of counts as evidence that is not whole"
        " ([0132](decisions.md#0132-readings-have-numbers)).\n\n"
        f"The ended transactions of the run RUN, in Spark SQL:\n\n```sql\n{ENDED_IN_A_RUN}```\n"
    )
    return "\n".join([intro, *(_section(table) for table in ALL_TABLES)])


def _section(table: Table) -> str:
    key = ", ".join(f"`{name}`" for name in table.key)
    lines = [f"## {table.name}", "", f"One row is {table.grain}. Key: {key}. {table.counts_by}".rstrip(), ""]
    lines += ["| column | type | |", "|---|---|---|"]
    for column in table.columns:
        optional = "" if not column.nullable else " (may be NULL)"
        comment = column.comment.replace("|", "\\|")
        lines.append(f"| `{column.name}` | {type_words(column.type)[:60]}{optional} | {comment} |")
    if table.checks:
        lines += ["", "Delta refuses a row that breaks one of these:", ""]
        lines += [f"* `{name}`: `{check.sql}`" for name, check in table.checks.items()]
    return "\n".join([*lines, ""])


def type_words(kind: pa.DataType) -> str:
    """A type as SQL has it."""
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_words(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind):
        return f"array<{type_words(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_words(kind.key_type)},{type_words(kind.item_type)}>"
    return _WORDS.get(kind, str(kind))

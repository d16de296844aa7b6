"""The first commit of a table: its schema, comments and CHECK constraints, and the format of its warehouse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import CommitProperties

from txn_analysis.errors import WarehouseError
from txn_analysis.tables import Table
from txn_analysis.warehouse.errors import DAMAGED
from txn_analysis.warehouse.roots import NoTable, Root

FORMAT = 5
"""The format of a warehouse: raised where a column is renamed or removed, or means something else (decision 0130).

A column that is added raises nothing: it may be NULL, is NULL in rows of before, and comes to Delta's schema at the
first write."""
_FORMAT_PROPERTY = "txn-analysis.format"
_WRITER_OF_CHECKS = "3"  # the least version of Delta's protocol whose writers heed CHECK constraints


def create_table(root: Root, table: Table) -> None:
    """Create a table; one that is there, or that another audit makes at the same time, stays as it is.

    Raises:
        WarehouseError: there are data files here, and no log of what they are.
        OSError: the disk fails it; no half of a file is left under its name.
    """
    if root.has_files(table.name) and not _is_logged(root, table):
        raise WarehouseError(f"{root.place}/{table.name}: {DAMAGED}")
    place, options = root.for_delta(table.name)
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields_of(table)}))
    with suppress(CommitFailedError):  # another audit was faster
        DeltaTable.create(
            place,
            schema,
            mode="ignore",
            partition_by=[*table.partition_by],
            description=f"One row is {table.grain}.",
            configuration=properties(table) | ({"delta.minWriterVersion": _WRITER_OF_CHECKS} if table.checks else {}),
            storage_options=options,
            commit_properties=CommitProperties(max_commit_retries=0),
            raise_if_key_not_exists=False,  # of the configuration: some properties are ours
        )


def _is_logged(root: Root, table: Table) -> bool:
    """Whether another audit has made it meanwhile: its first commit is there before its first data file."""
    with suppress(NoTable):
        return f"{0:020}.json" in root.log(table.name)
    return False


def fields_of(table: Table) -> list[dict[str, Any]]:
    """The columns of a table as Delta's schema has them, comments included."""
    declared = json.loads(Schema.from_arrow(table.arrow_schema).to_json())["fields"]
    return [
        field | {"nullable": column.nullable, "metadata": {"comment": column.comment}}
        for field, column in zip(declared, table.columns, strict=True)
    ]


def properties(table: Table) -> dict[str, str]:
    """Delta's properties of a table, its CHECK constraints among them."""
    # As properties of the new table the constraints need no commits of their own; ALTER TABLE takes one for each.
    checks = {f"delta.constraints.{name}": check.sql for name, check in table.checks.items()}
    return checks | {"delta.dataSkippingStatsColumns": ",".join(table.indexed), _FORMAT_PROPERTY: str(FORMAT)}


def check_format(root: str, properties: Mapping[str, str]) -> None:
    """Refuse a warehouse of another format: its rows would be read as what they are not (decision 0130).

    Args:
        root: the folder, or URI, of the warehouse.
        properties: those of one of its tables.

    Raises:
        WarehouseError: they say another format, or none.
    """
    if properties.get(_FORMAT_PROPERTY) != str(FORMAT):
        raise WarehouseError(f"{root}: made by another version of txn-analysis: audit again into a new --warehouse")

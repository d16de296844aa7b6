"""What other tools make of a table that is not read or written here: by the feature's name, with what undoes it.

A table is refused for what its files and properties hold, where it is needed, and never for what may happen to it. Each
remedy is run by a test (`tests/unit/warehouse/test_touched_tables.py`); docs/lakehouse.md has them all.
"""

from __future__ import annotations

from txn_analysis.errors import WarehouseError
from txn_analysis.warehouse.delta_folder import DeltaFolder

_PURGE = "REORG TABLE {table} APPLY (PURGE)"
_UNMAP = "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')"
# What `deltalake` 1.6 does not write. Where a feature is dropped that readers must know, Delta leaves
# `checkpointProtection` behind; these are of writers alone, and leave nothing.
_UNWRITTEN = {
    "rowTracking": (
        "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false'), then ALTER TABLE {table} DROP"
        " FEATURE rowTracking, then ALTER TABLE {table} DROP FEATURE domainMetadata"
    ),
    "domainMetadata": "ALTER TABLE {table} DROP FEATURE domainMetadata",
    "inCommitTimestamp": "ALTER TABLE {table} DROP FEATURE inCommitTimestamp",
    "checkpointProtection": (
        "ALTER TABLE {table} DROP FEATURE checkpointProtection TRUNCATE HISTORY, which works from 24 hours behind the"
        " last DROP FEATURE on, and takes the table's older versions away"
    ),
}
UNSUPPORTED = "Unsupported table features"
"""What `deltalake` says where a table asks for more than it writes; it says it as of a lost race."""

_ANEW = "audit the files again into a new --warehouse"


def check_readable(stored: DeltaFolder) -> None:
    """Refuse a table whose data files do not hold its rows as they are.

    Raises:
        WarehouseError: rows are deleted beside its files, or its columns may have other names there.
    """
    if stored.properties.get("delta.columnMapping.mode", "none") != "none":
        what = "another tool lets its columns have other names in its files (columnMapping), which is not read here"
        raise _refusal(stored.path, what, f"give each column its name back, then {_UNMAP}")
    if stored.has_deleted_rows:
        what = "another tool has deleted rows beside its files (deletionVectors), which is not read here"
        raise _refusal(stored.path, what, _PURGE)


def check_writable(stored: DeltaFolder) -> None:
    """Refuse to write a table with a feature that is not written here; it is read all the same.

    Raises:
        WarehouseError: it has one.
    """
    for feature, remedy in _UNWRITTEN.items():
        if feature in (stored.delta_table.protocol().writer_features or ()):
            what = f"another tool gave it the feature {feature}, which is not written here"
            raise _refusal(stored.path, what, remedy)


def unwritten(path: str, words: str) -> WarehouseError:
    """The error of a commit that the library refuses for a feature of which nothing is known here.

    Args:
        path: where the table lies.
        words: the library's words.
    """
    what = f"another tool gave it a feature that is not written here ({words.partition(': ')[2] or words})"
    return WarehouseError(f"{path}: {what}. Take it back with that tool, or {_ANEW}")


def _refusal(path: str, what: str, remedy: str) -> WarehouseError:
    done = remedy.replace("{table}", f"delta.`{path}`")
    return WarehouseError(f"{path}: {what}. In Spark with Delta: {done}. Or {_ANEW}")

"""The Delta tables of the warehouse, by what they are about; see `docs/tables.md` for the generated reference."""

from txn_analysis.tables._schema import INDEXED_COLUMNS, Col, Table
from txn_analysis.tables.findings import ABORT_PLAN, FINDINGS
from txn_analysis.tables.inputs import INPUTS, REJECTS, RUNS
from txn_analysis.tables.logs import (
    ABORTED_TRANSACTIONS,
    GROUP_OFFSETS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
)
from txn_analysis.tables.transactions import ENDED_TRANSACTIONS, PARTITION_HEALTH, TRANSACTIONS

ALL_TABLES = (
    INPUTS,
    REJECTS,
    LOG_BATCHES,
    LOG_PIECES,
    ENDED_TRANSACTIONS,
    GROUP_OFFSETS,
    PRODUCER_SNAPSHOTS,
    ABORTED_TRANSACTIONS,
    TRANSACTION_STATES,
    TRANSACTIONS,
    PARTITION_HEALTH,
    FINDINGS,
    ABORT_PLAN,
    RUNS,
)

__all__ = [
    "ABORTED_TRANSACTIONS",
    "ABORT_PLAN",
    "ALL_TABLES",
    "ENDED_TRANSACTIONS",
    "FINDINGS",
    "GROUP_OFFSETS",
    "INDEXED_COLUMNS",
    "INPUTS",
    "LOG_BATCHES",
    "LOG_PIECES",
    "PARTITION_HEALTH",
    "PRODUCER_SNAPSHOTS",
    "REJECTS",
    "RUNS",
    "TRANSACTIONS",
    "TRANSACTION_STATES",
    "Col",
    "Table",
]

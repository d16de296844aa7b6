"""The Delta tables of the warehouse, one module each; see `docs/tables.md` for the generated reference."""

from txn_analysis.tables._schema import INDEXED_COLUMNS, Col, Table
from txn_analysis.tables.abort_plan import ABORT_PLAN
from txn_analysis.tables.aborted_transactions import ABORTED_TRANSACTIONS
from txn_analysis.tables.findings import FINDINGS
from txn_analysis.tables.group_offsets import GROUP_OFFSETS
from txn_analysis.tables.inputs import INPUTS
from txn_analysis.tables.log_batches import LOG_BATCHES
from txn_analysis.tables.log_pieces import LOG_PIECES
from txn_analysis.tables.partition_health import PARTITION_HEALTH
from txn_analysis.tables.producer_snapshots import PRODUCER_SNAPSHOTS
from txn_analysis.tables.rejects import REJECTS
from txn_analysis.tables.runs import RUNS
from txn_analysis.tables.transaction_states import TRANSACTION_STATES
from txn_analysis.tables.transactions import ENDED_TRANSACTIONS, TRANSACTIONS

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

"""The Delta tables of the warehouse, by what they are about; `make site` makes a page of them, docs/tables.md."""

from txn_analysis.tables.appends import ProducerAppends
from txn_analysis.tables.findings import ABORT_PLAN, FINDINGS, AbortRecord, Finding, FoundCause, Impact, RuleAsked
from txn_analysis.tables.inputs import INPUTS, REJECTS, RUNS
from txn_analysis.tables.keeping import ACCEPTED, PRUNES, Decision, Prune
from txn_analysis.tables.logs import (
    ABORTED_TRANSACTIONS,
    CURRENT_STATES,
    GROUP_OFFSETS,
    LOG_BATCHES,
    LOG_PIECES,
    PRODUCER_SNAPSHOTS,
    TRANSACTION_STATES,
    BatchRangeSummary,
)
from txn_analysis.tables.schema import Col, Table
from txn_analysis.tables.transactions import (
    ENDED_TRANSACTIONS,
    PARTITION_HEALTH,
    TRANSACTIONS,
    PartitionHealth,
    Problem,
    ProducersBareMarker,
    ProducerState,
    Transaction,
    TwoLogs,
    UsedBatchRange,
)

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
    CURRENT_STATES,
    TRANSACTIONS,
    PARTITION_HEALTH,
    FINDINGS,
    ABORT_PLAN,
    RUNS,
    PRUNES,
)
"""Those of each warehouse; one of 1.0.0 has `ACCEPTED` as well."""

__all__ = [
    "ABORTED_TRANSACTIONS",
    "ABORT_PLAN",
    "ACCEPTED",
    "ALL_TABLES",
    "CURRENT_STATES",
    "ENDED_TRANSACTIONS",
    "FINDINGS",
    "GROUP_OFFSETS",
    "INPUTS",
    "LOG_BATCHES",
    "LOG_PIECES",
    "PARTITION_HEALTH",
    "PRODUCER_SNAPSHOTS",
    "PRUNES",
    "REJECTS",
    "RUNS",
    "TRANSACTIONS",
    "TRANSACTION_STATES",
    "AbortRecord",
    "BatchRangeSummary",
    "Col",
    "Decision",
    "Finding",
    "FoundCause",
    "Impact",
    "PartitionHealth",
    "Problem",
    "ProducerAppends",
    "ProducerState",
    "ProducersBareMarker",
    "Prune",
    "RuleAsked",
    "Table",
    "Transaction",
    "TwoLogs",
    "UsedBatchRange",
]

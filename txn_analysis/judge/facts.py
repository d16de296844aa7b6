"""Facts: one row per open transaction with everything that the rules ask, each condition as a named column.

Lateness, clocks and bounds follow the contract's section 5. All moments are epoch milliseconds of some broker's
clock; wherever those of two brokers are compared, `max_clock_skew_ms` is allowed for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from txn_analysis.config import LATE_TRANSACTION_BUFFER_MS
from txn_analysis.judge.coordinator import CANDIDATE_KEY
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, array, struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from txn_analysis.config import Settings
    from txn_analysis.judge.state_coverage import StateEvidence

# KIP-939: such a transaction is a two-phase commit that only its owner may end.
NEVER_TIMES_OUT_MS = 2**31 - 1
_HOLDER = struct(
    state_partition=INT,
    is_seen=BOOLEAN,
    is_console=BOOLEAN,
    moment_ms=BIGINT,
    gap_ms=BIGINT,
    problems=array(STRING),
    holes=array(STRING),
)


def facts(
    opened: DataFrame,
    health: DataFrame,
    coordinator: DataFrame,
    state: StateEvidence,
    settings: Settings,
    as_of_ms: int | None,
) -> DataFrame:
    """One row per open transaction: its own columns, its partition's, the coordinator's, and the conditions.

    In:  `opened`, open rows of `transactions`; `health`, rows of `partition_health`; `coordinator`, rows of
         `coordinator_facts`.
    """
    place = ["topic", "partition"]
    partition = health.select(
        *place,
        F.col("end_offset").alias("log_end_offset"),
        "last_stable_offset",
        "last_moment_ms",
        "last_credible_timestamp_ms",
    )
    holders = opened.sparkSession.createDataFrame(
        [tuple(p.as_row()[n] for n in _HOLDER.names) for p in state.partitions], _HOLDER
    )
    holder = holders.select("state_partition", F.struct("*").alias("holder"))
    rows = opened.drop("run_id").join(partition, place).join(coordinator, list(CANDIDATE_KEY), "left")
    rows = rows.join(F.broadcast(holder), "state_partition", "left")
    rows = rows.withColumn("blocks_partition", F.col("txn_start_offset") == F.col("last_stable_offset"))
    rows = rows.withColumns(_lateness(settings, as_of_ms))
    rows = rows.withColumns(_against_live_transaction(settings, as_of_ms))
    return rows.withColumns(_against_state(state, settings)).withColumns(_against_log(settings, as_of_ms))


def _lit(value: int | None) -> Column:
    return F.lit(value).cast("bigint")


def _true(condition: Column) -> Column:
    """The condition with NULL as false, for conditions that accuse only on proof."""
    return F.coalesce(condition, F.lit(False))


def _lateness(settings: Settings, as_of_ms: int | None) -> dict[str, Column]:
    """Late means strictly beyond the bound (`ProducerStateManager.hasLateTransaction`), by the best clock there is."""
    as_of, last, before = _lit(as_of_ms), F.col("last_timestamp_ms"), F.col("appended_before_ms")
    is_credible = _true((last > 0) & (last <= as_of))
    bound_ms = settings.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    quiet_ms = F.when(is_credible, as_of - last).otherwise(as_of - before)
    return {
        "idle_ms": as_of - last,
        "lateness_basis": F.when(is_credible, "last_timestamp").when(
            before.isNotNull() & as_of.isNotNull(), "broker_clock"
        ),
        "late_by_ms": quiet_ms - bound_ms,
        "is_late": quiet_ms > bound_ms,
    }


def _against_live_transaction(settings: Settings, as_of_ms: int | None) -> dict[str, Column]:
    as_of, skew = _lit(as_of_ms), settings.max_clock_skew_ms
    bound_ms = settings.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
    timeout = F.col("coordinator_timeout_ms")
    overdue = as_of > F.col("coordinator_start_ms") + timeout + LATE_TRANSACTION_BUFFER_MS
    return {
        "is_older_by_clock": _true(F.col("first_appended_before_ms") + skew < F.col("coordinator_start_ms")),
        "is_older_by_epoch": _true(F.col("coordinator_txn_epoch") > F.col("max_producer_epoch")),
        "is_update_overdue": _true(as_of - F.col("coordinator_update_ms") > bound_ms),
        "is_transaction_overdue": _true((timeout != NEVER_TIMES_OUT_MS) & overdue),
        "is_producer_live": _true(F.col("is_producer_live")),
    }


def _against_state(state: StateEvidence, settings: Settings) -> dict[str, Column]:
    """Does the state reach up to the open data, and could it hold the answer at all?"""
    before, is_waived = F.col("appended_before_ms"), F.lit(settings.state_copied_last)
    is_known = F.col("transactional_id").isNotNull()
    reached_ms = F.when(is_known, F.col("holder.moment_ms")).otherwise(_lit(state.oldest_moment_ms()))
    is_complete = settings.transaction_state_complete
    own_gaps = F.col("holder.problems") if is_complete else F.concat("holder.problems", "holder.holes")
    named = F.transform(
        own_gaps, lambda gap: F.format_string("__transaction_state-%d: %s", F.col("state_partition"), gap)
    )
    return {
        "is_unbounded": before.isNull() & ~is_waived,
        "is_state_behind": before.isNotNull() & ~is_waived & ~_true(reached_ms >= before + settings.max_clock_skew_ms),
        "is_epoch_ahead": _true(F.col("max_producer_epoch") > F.col("state_epoch")),
        "state_gaps": F.when(
            is_known,
            F.concat(
                _strings(state.misfits),
                F.coalesce(named, _strings(["the partition that holds the id is not in the capture"])),
            ),
        ).otherwise(_strings(state.gaps(holes_waived=is_complete))),
        "state_partitions_seen": F.lit(state.seen_count),
        "state_partitions_expected": F.lit(state.expected_count),
    }


def _against_log(settings: Settings, as_of_ms: int | None) -> dict[str, Column]:
    """Could the transaction have been ended after this partition's log was copied?"""
    skew = settings.max_clock_skew_ms
    recorded_later = F.coalesce(F.col("recorded_after_ms") > F.col("last_moment_ms") - skew, F.lit(True))
    since = F.coalesce(F.col("last_marker_ms") - skew, _lit(-(2**63)))
    has_gap = _true(F.col("holder.gap_ms") >= since)
    if not settings.transaction_state_complete:
        has_gap |= _true(F.col("holder.is_console"))
    known_ended = recorded_later & (has_gap | F.col("has_prepare_since_marker"))
    seen_to = F.coalesce("last_moment_ms", "last_credible_timestamp_ms")
    expired = F.coalesce(seen_to < _lit(as_of_ms) - settings.transactional_id_expiration_ms, F.lit(True))
    return {"may_log_end_early": F.when(F.col("transactional_id").isNotNull(), known_ended).otherwise(expired)}


def _strings(values: list[str]) -> Column:
    return F.array(*[F.lit(v) for v in values]).cast("array<string>")

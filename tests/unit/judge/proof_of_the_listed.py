"""The proof table, first part: broken evidence, stale data, lateness, a state of others, lost commits, listed data."""

from tests.tools.judged_cases import (
    AFTER_MS,
    BOUND_MS,
    HOLDER,
    LATE_MS,
    MINUTE_MS,
    NOW_MS,
    SKEW_MS,
    UNKNOWN,
    Case,
    left,
    listed,
    with_partition,
)
from txn_analysis.coordinator.fit import Contradictions, Fit, MarkerSums, UnexplainedMarker

GAP = ("offsets 3 to 5 are in no file",)
COPIED_LAST = {"state_copied_last": True}
NOT_LATE = {"last_timestamp_ms": NOW_MS}
OLDER = {"txn_epoch": 4}
"""The coordinator's transaction runs at an epoch above the open data's."""


def contradicted_by(producer_id: int, confirmed_count: int = 1) -> Fit:
    """One COMMIT marker of a producer has no decision in the state; so many others have one."""
    witness = UnexplainedMarker(AFTER_MS, "orders", 1, 50, producer_id)
    return Fit(sums=MarkerSums(confirmed_count, Contradictions(1, {producer_id: witness}, witness)))


FOREIGN = Fit(unfit=("not one producer of the logs occurs in it",))

BROKEN = (
    Case("gap in the log", "evidence_broken", open={"evidence_gaps": GAP}),
    Case("gap in the log, not late", "evidence_broken", open={"evidence_gaps": GAP} | NOT_LATE),
    Case(
        "gap in the log, commit pending", "evidence_broken", open={"evidence_gaps": GAP}, known=listed("PrepareCommit")
    ),
    Case(
        "gap in the log, stale data", "evidence_broken", open={"evidence_gaps": GAP}, known=listed("Ongoing", **OLDER)
    ),
    Case("gap in the log, commit lost", "evidence_broken", open={"evidence_gaps": GAP}, known=left("COMMIT", AFTER_MS)),
    Case("gap in the log, state of another cluster", "evidence_broken", open={"evidence_gaps": GAP}, fit=FOREIGN),
    Case("only above its folder's high watermark", "evidence_broken", open={"is_above_high_watermark": True}),
    Case(
        "only above its folder's high watermark, unknown producer",
        "evidence_broken",
        open={"is_above_high_watermark": True},
        known=UNKNOWN,
    ),
    Case(
        "only above its folder's high watermark, but the coordinator lists it",
        "in_coordinator",
        open={"is_above_high_watermark": True},
        known=listed("Ongoing"),
    ),
)

STALE = (
    Case(
        "first append bounded 1 ms before the live transaction",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", start_ms=BOUND_MS + SKEW_MS + 1),
    ),
    Case(
        "first append bounded at the live transaction's start",
        "in_coordinator",
        known=listed("Ongoing", start_ms=BOUND_MS + SKEW_MS),
    ),
    Case(
        "live transaction one epoch above the data", "stale_data_in_live_transaction", known=listed("Ongoing", **OLDER)
    ),
    Case("live transaction at the data's epoch", "in_coordinator", known=listed("Ongoing", txn_epoch=3)),
    Case("stale data, not late", "stale_data_in_live_transaction", open=NOT_LATE, known=listed("Ongoing", **OLDER)),
    Case("stale data, but decided", "marker_pending_commit", known=listed("PrepareCommit", **OLDER)),
    Case(
        "stale data, coordinator overdue",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", timeout_ms=1, **OLDER),
    ),
    Case("stale data, state of another cluster", "state_does_not_fit", known=listed("Ongoing", **OLDER), fit=FOREIGN),
    Case(
        "stale data, its own abort's marker is lost",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", **OLDER) | left("ABORT", AFTER_MS, settled_ms=NOW_MS - SKEW_MS),
    ),
    Case(
        "stale data, its own abort's marker may still have come",
        "in_coordinator",
        known=listed("Ongoing", **OLDER) | left("ABORT", AFTER_MS, settled_ms=NOW_MS - SKEW_MS + 1),
    ),
    Case(
        "stale data, its own commit's marker is lost",
        "commit_marker_missing",
        known=listed("Ongoing", **OLDER) | left("COMMIT", AFTER_MS),
    ),
    Case(
        "a healthy producer: the log was copied in its one transaction, the state in its next",
        "not_late",
        open=NOT_LATE,
        known=listed("Ongoing", start_ms=BOUND_MS + SKEW_MS + 1) | left("COMMIT", NOW_MS),
    ),
    Case(
        "stale data, and a gap could hide its decision",
        "in_coordinator",
        known=listed("Ongoing", **OLDER),
        holder={"gap_end_ms": AFTER_MS - SKEW_MS},
    ),
    Case(
        "stale data, and a gap that ended before it was written",
        "stale_data_in_live_transaction",
        known=listed("Ongoing", **OLDER),
        holder={"gap_end_ms": AFTER_MS - SKEW_MS - 1},
    ),
    Case(
        "stale data, no broker's clock in its partition",
        "in_coordinator",
        known=listed("Ongoing", **OLDER),
        health={"last_moment_ms": None},
    ),
    Case(
        "newer transaction that does not list the partition",
        "partition_not_in_transaction",
        known={"state": "Ongoing", "state_epoch": 4} | OLDER,
    ),
)

LATENESS = (
    Case("idle 1 ms less than the bound", "not_late", open={"last_timestamp_ms": NOW_MS - LATE_MS + 1}),
    Case("idle exactly the bound", "not_late", open={"last_timestamp_ms": NOW_MS - LATE_MS}),
    Case(
        "idle 1 ms more than the bound",
        "partition_not_in_transaction",
        open={"last_timestamp_ms": NOW_MS - LATE_MS - 1},
    ),
    Case("not late, commit pending", "not_late", open=NOT_LATE, known=listed("PrepareCommit")),
    Case("not late, state older", "not_late", open=NOT_LATE | {"appended_before_ms": None}),
    Case("not late, state of another cluster", "not_late", open=NOT_LATE, fit=FOREIGN),
    Case("not late, commit lost", "not_late", open=NOT_LATE, known=left("COMMIT", AFTER_MS)),
    # a timestamp after the capture, or none, is measured by the brokers
    Case(
        "client clock ahead, broker bound late", "partition_not_in_transaction", open={"last_timestamp_ms": NOW_MS + 1}
    ),
    Case(
        "client clock ahead, broker bound exactly the bound",
        "not_late",
        open={"last_timestamp_ms": NOW_MS + 1, "appended_before_ms": NOW_MS - LATE_MS},
    ),
    Case("no timestamp, broker bound late", "partition_not_in_transaction", open={"last_timestamp_ms": None}),
    Case("timestamp 0 is not credible", "not_late", open={"last_timestamp_ms": 0, "appended_before_ms": NOW_MS}),
    Case(
        "client clock ahead, no broker bound",
        "clock_not_credible",
        open={"last_timestamp_ms": NOW_MS + 1, "appended_before_ms": None},
    ),
    Case(
        "no clock, commit pending",
        "clock_not_credible",
        open={"last_timestamp_ms": None, "appended_before_ms": None},
        known=listed("PrepareCommit"),
    ),
    Case(
        "no clock, state of another cluster",
        "clock_not_credible",
        open={"last_timestamp_ms": None, "appended_before_ms": None},
        fit=FOREIGN,
    ),
    Case("no moment of the capture", "clock_not_credible", as_of_ms=None, newest_ms=None),
)

MISFITS = (
    Case("state of another cluster", "state_does_not_fit", fit=FOREIGN),
    Case("unknown producer, state of another cluster", "state_does_not_fit", known=UNKNOWN, fit=FOREIGN),
    Case("a commit of its producer has no decision in the state", "state_does_not_fit", fit=contradicted_by(7)),
    Case("a commit of another producer has none", "state_incomplete", fit=contradicted_by(8)),
    Case(
        "unknown producer, a commit of another one has none",
        "state_does_not_fit",
        known=UNKNOWN,
        fit=contradicted_by(8),
    ),
    Case("commit lost, state of another cluster", "state_does_not_fit", known=left("COMMIT", AFTER_MS), fit=FOREIGN),
    Case("commit pending, state of another cluster", "state_does_not_fit", known=listed("PrepareCommit"), fit=FOREIGN),
)

LOST = (
    Case("a commit's marker is lost", "commit_marker_missing", known=left("COMMIT", AFTER_MS)),
    Case(
        "a commit was completed just when the log ends, as far as clocks tell",
        "commit_marker_missing",
        known=left("COMMIT", AFTER_MS, settled_ms=NOW_MS - SKEW_MS) | {"recorded_ms": NOW_MS - SKEW_MS},
    ),
    Case(
        "a commit was completed 1 ms later: its marker may lie behind the log's end",
        "log_may_end_early",
        known=left("COMMIT", AFTER_MS, settled_ms=NOW_MS - SKEW_MS + 1) | {"recorded_ms": NOW_MS - SKEW_MS + 1},
    ),
    Case(
        "a commit, and no broker's clock in the partition",
        "log_may_end_early",
        known=left("COMMIT", AFTER_MS),
        health={"last_moment_ms": None},
    ),
    Case("an abort's marker is lost", "partition_not_in_transaction", known=left("ABORT", AFTER_MS)),
    Case("another copy has its COMMIT marker", "commit_marker_missing", open={"other_copy_commit_offset": 105}),
    Case(
        "unknown producer, another copy has its COMMIT marker",
        "commit_marker_missing",
        known=UNKNOWN,
        open={"other_copy_commit_offset": 105},
    ),
    Case(
        "a commit's marker is lost, the next one is pending",
        "commit_marker_missing",
        known=listed("PrepareCommit") | left("COMMIT", AFTER_MS),
    ),
    Case(
        "a commit's marker is lost, the next transaction is overdue",
        "commit_marker_missing",
        known=listed("Ongoing", timeout_ms=1) | left("COMMIT", AFTER_MS),
    ),
    Case(
        "a commit's marker is lost, nothing bounds the data",
        "commit_marker_missing",
        known=left("COMMIT", AFTER_MS),
        open={"appended_before_ms": None},
    ),
    Case(
        "a commit's marker is lost, whatever the operator says",
        "commit_marker_missing",
        known=left("COMMIT", AFTER_MS),
        settings={"no_records_lost": True},
    ),
)

HOLDERS_END_MS = NOW_MS - 30 * MINUTE_MS
ENDS_EARLY = with_partition(HOLDER, last_moment_ms=HOLDERS_END_MS)

DECIDED = (
    Case("commit pending", "marker_pending_commit", known=listed("PrepareCommit")),
    Case(
        "commit pending exactly the bound",
        "marker_pending_commit",
        known=listed("PrepareCommit", update_ms=NOW_MS - LATE_MS),
    ),
    Case("commit pending 1 ms longer", "marker_overdue", known=listed("PrepareCommit", update_ms=NOW_MS - LATE_MS - 1)),
    Case("abort pending", "marker_pending_abort", known=listed("PrepareAbort", update_ms=NOW_MS - LATE_MS)),
    Case("abort pending 1 ms longer", "marker_overdue", known=listed("PrepareAbort", update_ms=NOW_MS - LATE_MS - 1)),
    Case("commit pending, update time unknown", "marker_pending_commit", known=listed("PrepareCommit", update_ms=None)),
    Case(
        "commit pending at the end of a state that was copied first",
        "marker_pending_commit",
        known=listed("PrepareCommit", update_ms=HOLDERS_END_MS - LATE_MS),
        partitions=ENDS_EARLY,
    ),
    Case(
        "commit pending 1 ms longer at the end of such a state",
        "marker_overdue",
        known=listed("PrepareCommit", update_ms=HOLDERS_END_MS - LATE_MS - 1),
        partitions=ENDS_EARLY,
    ),
    Case(
        "commit pending at the end of a state that was copied last",
        "marker_overdue",
        known=listed("PrepareCommit", update_ms=HOLDERS_END_MS - LATE_MS),
        partitions=ENDS_EARLY,
        settings=COPIED_LAST,
    ),
    Case(
        "commit pending 1 ms longer at the end of its log directory's state",
        "marker_overdue",
        known=listed("PrepareCommit", update_ms=NOW_MS - LATE_MS - 1),
        holder={"last_moment_ms": HOLDERS_END_MS, "log_dir_end_ms": NOW_MS},
    ),
    Case(
        "commit pending, --as-of before the end of a state that was copied last",
        "marker_overdue",
        known=listed("PrepareCommit", update_ms=NOW_MS - LATE_MS - 1),
        as_of_ms=NOW_MS - 30 * MINUTE_MS,
        settings=COPIED_LAST,
    ),
    Case(
        "commit pending, state older",
        "marker_pending_commit",
        open={"appended_before_ms": None},
        known=listed("PrepareCommit", update_ms=NOW_MS),
    ),
    Case(
        "commit pending, history may end early",
        "marker_pending_commit",
        known=listed("PrepareCommit", recorded_ms=NOW_MS),
        holder={"gap_end_ms": NOW_MS},
    ),
)

IN_PROGRESS = (
    Case("in the coordinator", "in_coordinator", known=listed("Ongoing")),
    Case(
        "at its timeout and 5 minutes",
        "in_coordinator",
        known=listed("Ongoing", start_ms=NOW_MS - 360 * MINUTE_MS, timeout_ms=355 * MINUTE_MS),
    ),
    Case(
        "1 ms past its timeout and 5 minutes",
        "coordinator_overdue",
        known=listed("Ongoing", start_ms=NOW_MS - 360 * MINUTE_MS - 1, timeout_ms=355 * MINUTE_MS),
    ),
    Case(
        "past its timeout only after the end of a state that was copied first",
        "in_coordinator",
        known=listed("Ongoing", start_ms=HOLDERS_END_MS - 60 * MINUTE_MS, timeout_ms=55 * MINUTE_MS),
        partitions=ENDS_EARLY,
    ),
    Case(
        "past its timeout after the end of a state that was copied last",
        "coordinator_overdue",
        known=listed("Ongoing", start_ms=HOLDERS_END_MS - 60 * MINUTE_MS, timeout_ms=55 * MINUTE_MS),
        partitions=ENDS_EARLY,
        settings=COPIED_LAST,
    ),
    Case(
        "a two-phase commit is never overdue",
        "in_coordinator",
        known=listed("Ongoing", start_ms=1, timeout_ms=2**31 - 1),
        open={"first_appended_before_ms": None},
    ),
    Case("in the coordinator, start unknown", "in_coordinator", known=listed("Ongoing", start_ms=None)),
    Case(
        "in the coordinator, a commit of another producer has no decision",
        "in_coordinator",
        known=listed("Ongoing"),
        fit=contradicted_by(8),
    ),
    Case(
        "in the coordinator, nothing bounds the data",
        "in_coordinator",
        known=listed("Ongoing"),
        open={"appended_before_ms": None},
    ),
    Case("a listed state that no rule knows", "no_rule", known=listed("PrepareEpochFence")),
)

CASES = (*BROKEN, *STALE, *LATENESS, *MISFITS, *LOST, *DECIDED, *IN_PROGRESS)

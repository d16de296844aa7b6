"""The proof table, second part: nothing in progress lists the data, and whether the evidence proves that."""

from dataclasses import replace
from typing import Any

from tests.tools.judged_cases import (
    AFTER_MS,
    ALL_SEEN,
    BOUND_MS,
    HOLDER,
    MARKED_MS,
    MINUTE_MS,
    NOW_MS,
    SKEW_MS,
    UNKNOWN,
    Case,
    left,
    with_partition,
)
from tests.unit.judge.proof_of_the_listed import COPIED_LAST
from txn_analysis.coordinator.chain import LeaderEpochChange, StateChain
from txn_analysis.coordinator.coverage import Hole
from txn_analysis.coordinator.fit import Contradictions, Fit, MarkerSums, UnexplainedMarker
from txn_analysis.coordinator.history import WithoutMarker

WEEK_MS = 604_800_000
NO_BOUND = {"appended_before_ms": None}
NOT_EXACT = {"is_txn_start_exact": False}
NOT_GIVEN = StateChain()._asdict() | {"is_seen": False, "problems": ["not in the capture"]}
COMPLETE = {"transaction_state_complete": True}
NOTHING_LOST = {"no_records_lost": True}
LATER = {"recorded_ms": NOW_MS - SKEW_MS + 1}
"""The coordinator recorded something for the id after the log's last moment."""
HOLE = Hole("offsets 3 to 5 are in no file")


def of_unknown(name: str, rule: str, **changes: Any) -> Case:
    """Nobody has, or had, the producer id."""
    return Case(f"unknown producer, {name}", rule, known=UNKNOWN, **changes)


HANGING = (
    Case("the story itself", "partition_not_in_transaction"),
    Case("nobody ever had the producer id", "unknown_producer", known=UNKNOWN),
    Case(
        "the id was removed",
        "partition_not_in_transaction",
        known={"state": "Tombstone", "runs_under_producer_id": False, "state_epoch": None},
    ),
    Case(
        "the id runs under another producer id",
        "partition_not_in_transaction",
        known={"runs_under_producer_id": False, "producer_id": 8, "state_epoch": None},
    ),
    Case("in progress elsewhere", "partition_not_in_transaction", known={"state": "Ongoing", "is_producer_live": True}),
)

OLDER = (
    Case("nothing bounds the data", "state_older_than_log", open=NO_BOUND),
    Case(
        "nothing bounds the data, state copied last",
        "partition_not_in_transaction",
        open=NO_BOUND,
        settings=COPIED_LAST,
    ),
    Case(
        "state reaches the data's bound", "partition_not_in_transaction", holder={"last_moment_ms": BOUND_MS + SKEW_MS}
    ),
    Case(
        "state ends 1 ms before the data's bound",
        "state_older_than_log",
        holder={"last_moment_ms": BOUND_MS + SKEW_MS - 1},
    ),
    Case(
        "state ends before, state copied last",
        "partition_not_in_transaction",
        holder={"last_moment_ms": 1},
        settings=COPIED_LAST,
    ),
    Case("another partition ends before", "partition_not_in_transaction", another={"last_moment_ms": 1}),
    of_unknown("any partition ends before", "state_older_than_log", another={"last_moment_ms": 1}),
    of_unknown("a partition never speaks", "state_older_than_log", another={"last_moment_ms": None}),
    of_unknown("a partition was not given", "state_incomplete", another=NOT_GIVEN),
    Case(
        "state ends before, state copied last, a record of another partition could not be decoded",
        "partition_not_in_transaction",
        partitions=tuple(
            replace(p, undecodable_count=p.state_partition == 0) for p in with_partition(HOLDER, last_moment_ms=1)
        ),
        fit=Fit(sums=MarkerSums(has_later_unexplained=True)),
        settings=COPIED_LAST,
    ),
    Case("data one epoch above the state", "state_older_than_log", open={"max_producer_epoch": 4}),
    Case(
        "data one epoch above the state, state copied last",
        "state_older_than_log",
        open={"max_producer_epoch": 4},
        settings=COPIED_LAST,
    ),
)

EARLY = (
    Case(
        "recorded after the log, a decision without its marker",
        "log_may_end_early",
        known=left("ABORT", AFTER_MS) | LATER,
    ),
    Case(
        "recorded at the log's end, an abort without its marker",
        "partition_not_in_transaction",
        known=left("ABORT", AFTER_MS) | {"recorded_ms": NOW_MS - SKEW_MS},
    ),
    Case("recorded after the log, history whole", "partition_not_in_transaction", known=LATER),
    Case("recorded after the log, history has a gap", "log_may_end_early", known=LATER, holder={"gap_end_ms": NOW_MS}),
    Case(
        "recorded after the log, gap before the last marker",
        "partition_not_in_transaction",
        known=LATER,
        holder={"gap_end_ms": MARKED_MS - SKEW_MS - 1},
    ),
    Case(
        "recorded after the log, gap at the last marker",
        "log_may_end_early",
        known=LATER,
        holder={"gap_end_ms": MARKED_MS - SKEW_MS},
    ),
    Case(
        "recorded after the log, any gap and no marker",
        "log_may_end_early",
        open={"last_marker_ms": None},
        known=LATER,
        holder={"gap_end_ms": 1},
    ),
    Case(
        "no broker's clock in the partition, an abort without its marker",
        "log_may_end_early",
        health={"last_moment_ms": None},
        known=left("ABORT", AFTER_MS),
    ),
    Case(
        "nothing waives it",
        "log_may_end_early",
        known=left("ABORT", AFTER_MS) | LATER,
        settings=COPIED_LAST | COMPLETE | NOTHING_LOST,
    ),
    Case("a console export has gaps", "log_may_end_early", known=LATER, holder={"is_console": True}),
    Case(
        "a complete console export has none after the id's first record",
        "partition_not_in_transaction",
        known=LATER | {"export_gap_ms": MARKED_MS - SKEW_MS - 1},
        holder={"is_console": True},
        settings=COMPLETE,
    ),
    Case(
        "a complete console export may lack what compaction removed before the id's first record",
        "log_may_end_early",
        known=LATER | {"export_gap_ms": MARKED_MS - SKEW_MS},
        holder={"is_console": True},
        settings=COMPLETE,
    ),
    Case(
        "a complete console export that begins with the new id lacks nothing, even without any marker",
        "partition_not_in_transaction",
        open={"last_marker_ms": None},
        known=LATER | {"export_gap_ms": None},
        holder={"is_console": True},
        settings=COMPLETE,
    ),
    of_unknown("log ends at the expiration", "unknown_producer", health={"last_moment_ms": NOW_MS - WEEK_MS}),
    of_unknown("log ends 1 ms before it", "log_may_end_early", health={"last_moment_ms": NOW_MS - WEEK_MS - 1}),
    of_unknown(
        "log ends 1 ms before it, --as-of is earlier than the copy",
        "log_may_end_early",
        health={"last_moment_ms": NOW_MS - WEEK_MS - 1},
        as_of_ms=NOW_MS - 30 * MINUTE_MS,
    ),
    of_unknown(
        "log ends 1 ms before it, --as-of is later than any clock",
        "log_may_end_early",
        health={"last_moment_ms": NOW_MS - WEEK_MS - 1},
        newest_ms=NOW_MS - 30 * MINUTE_MS,
    ),
    of_unknown("no broker clock, credible batch", "unknown_producer", health={"last_moment_ms": None}),
    of_unknown(
        "no clock at all", "log_may_end_early", health={"last_moment_ms": None, "last_credible_timestamp_ms": None}
    ),
    of_unknown(
        "a gap of any partition ends after the log",
        "log_may_end_early",
        another={"gap_end_ms": NOW_MS - SKEW_MS + 1},
        settings=NOTHING_LOST,
    ),
    of_unknown(
        "a gap of any partition ends with the log",
        "unknown_producer",
        another={"gap_end_ms": NOW_MS - SKEW_MS},
        settings=NOTHING_LOST,
    ),
    of_unknown(
        "a Complete record after the log has no Prepare",
        "log_may_end_early",
        another={"lone_complete_ms": NOW_MS - SKEW_MS + 1},
    ),
    of_unknown(
        "such a record at the end of the log", "unknown_producer", another={"lone_complete_ms": NOW_MS - SKEW_MS}
    ),
    of_unknown(
        "such a record of any time and no broker's clock",
        "log_may_end_early",
        another={"lone_complete_ms": 1},
        health={"last_moment_ms": None},
    ),
    of_unknown("a complete console export", "unknown_producer", another={"is_console": True}, settings=COMPLETE),
    of_unknown(
        "a console export and the epochs of its id used up",
        "log_may_end_early",
        open={"producer_epoch": 32_766},
        another={"is_console": True},
        settings=COMPLETE,
    ),
    of_unknown(
        "a console export and an id that may have expired",
        "log_may_end_early",
        open={"first_appended_after_ms": NOW_MS - WEEK_MS - 1},
        another={"is_console": True},
        settings=COMPLETE,
    ),
)

OF_ANY_ID = {"undecodable_count": 1, "keyless_count": 1}
OF_OWN = UnexplainedMarker(AFTER_MS, "orders", 0, 50, 7)
NOT_DECODED = (
    Case("a record of any id in its partition of the state could not be decoded", "state_incomplete", holder=OF_ANY_ID),
    Case(
        "a record in another partition of the state could not be decoded",
        "partition_not_in_transaction",
        another=OF_ANY_ID,
    ),
    Case(
        "the same, and a marker of its producer contradicts the state",
        "state_does_not_fit",
        another=OF_ANY_ID,
        fit=Fit(sums=MarkerSums(confirmed_count=1, against=Contradictions(1, {7: OF_OWN}, OF_OWN, is_of_known=True))),
    ),
    Case(
        "recorded after the log, a gap, and a record in another partition could not be decoded",
        "log_may_end_early",
        known=LATER,
        partitions=tuple(
            replace(p, undecodable_count=p.state_partition == 0) for p in with_partition(HOLDER, gap_end_ms=NOW_MS)
        ),
    ),
    Case(
        "no copy of the log reaches past a record that could not be decoded",
        "state_incomplete",
        known=UNKNOWN,
        health={"last_moment_ms": NOW_MS - WEEK_MS - 1},
        another={"undecodable_count": 1, "problems": ["1 record could not be decoded"]},
    ),
)

UNCONFIRMED = Fit(sums=MarkerSums(is_unsure=True))


def confirming(at_ms: int) -> Fit:
    """The newest marker that the state surely confirms is of then."""
    return Fit(sums=MarkerSums(is_unsure=True, sure_ms=at_ms))


UNREACHED = Fit(sums=MarkerSums(unreached=UnexplainedMarker(AFTER_MS, "orders", 1, 50, 9)))

INCOMPLETE = (
    Case("the state surely confirms no marker", "state_incomplete", fit=UNCONFIRMED),
    Case("no marker is confirmed, of an unknown producer", "state_incomplete", known=UNKNOWN, fit=UNCONFIRMED),
    Case("it confirms one", "unknown_producer", known=UNKNOWN, fit=confirming(BOUND_MS - SKEW_MS)),
    Case("it confirms one of before", "state_incomplete", known=UNKNOWN, fit=confirming(BOUND_MS - SKEW_MS - 1)),
    Case("it confirms one of before, of a known producer", "state_incomplete", fit=confirming(BOUND_MS - SKEW_MS - 1)),
    Case(
        "a commit is later than a part of a state that was copied last",
        "state_incomplete",
        known=UNKNOWN,
        fit=UNREACHED,
        settings=COPIED_LAST,
    ),
    Case("the same without that word", "unknown_producer", known=UNKNOWN, fit=UNREACHED),
    Case(
        "its end in its log directory does not prove that it reaches the data",
        "state_older_than_log",
        holder={"last_moment_ms": BOUND_MS, "log_dir_end_ms": NOW_MS},
    ),
    Case("the id's partition was not given", "state_incomplete", holder=NOT_GIVEN),
    Case("the state has no such partition", "state_incomplete", known={"state_partition": 9}),
    Case(
        "only the id's own partition was given",
        "partition_not_in_transaction",
        partitions=tuple(ALL_SEEN[HOLDER] if n == HOLDER else with_partition(n, **NOT_GIVEN)[n] for n in range(4)),
    ),
    Case("the id's partition is broken", "state_incomplete", holder={"problems": ["broken"]}),
    Case("the id's partition has a hole", "state_incomplete", holder={"holes": [HOLE]}),
    Case(
        "a hole that ends at the last marker",
        "state_incomplete",
        holder={"holes": [HOLE._replace(end_ms=MARKED_MS - SKEW_MS)]},
    ),
    Case(
        "a hole that ends 1 ms before it",
        "partition_not_in_transaction",
        holder={"holes": [HOLE._replace(end_ms=MARKED_MS - SKEW_MS - 1)]},
    ),
    Case(
        "a hole of any time, and no marker",
        "state_incomplete",
        open={"last_marker_ms": None},
        holder={"holes": [HOLE._replace(end_ms=1)]},
    ),
    Case(
        "the id's partition has a hole, waived",
        "partition_not_in_transaction",
        holder={"holes": [HOLE]},
        settings=COMPLETE,
    ),
    Case(
        "the id's partition is broken, not waived",
        "state_incomplete",
        holder={"problems": ["broken"]},
        settings=COMPLETE,
    ),
    Case("another partition is broken", "partition_not_in_transaction", another={"problems": ["broken"]}),
    of_unknown("any partition is broken", "state_incomplete", another={"problems": ["broken"]}),
    of_unknown(
        "any partition has a hole of any time", "state_incomplete", another={"holes": [HOLE._replace(end_ms=1)]}
    ),
    of_unknown(
        "the state begins with the data's bound",
        "state_incomplete",
        partitions=tuple(replace(p, chain=p.chain._replace(first_moment_ms=BOUND_MS)) for p in ALL_SEEN),
        settings=COMPLETE | COPIED_LAST | NOTHING_LOST,
    ),
    of_unknown(
        "one partition of the state begins 1 ms before it",
        "unknown_producer",
        partitions=tuple(
            replace(p, chain=p.chain._replace(first_moment_ms=BOUND_MS - (p.state_partition == 1))) for p in ALL_SEEN
        ),
    ),
    Case("state older and incomplete", "state_older_than_log", open=NO_BOUND, holder={"problems": ["broken"]}),
    Case(
        "log ends early and state incomplete",
        "log_may_end_early",
        known=left("ABORT", AFTER_MS) | LATER,
        holder={"problems": ["broken"]},
    ),
)

GAP_SINCE_WRITTEN = with_partition(HOLDER, gap_end_ms=AFTER_MS - SKEW_MS)
GAP_BEFORE = with_partition(HOLDER, gap_end_ms=AFTER_MS - SKEW_MS - 1)

PERHAPS_LOST = (
    Case("its decision may be compacted away", "commit_may_be_missing", partitions=GAP_SINCE_WRITTEN),
    Case(
        "its decision may be, and no record was lost",
        "partition_not_in_transaction",
        partitions=GAP_SINCE_WRITTEN,
        settings=NOTHING_LOST,
    ),
    Case("what is gone is 1 ms older than the data", "partition_not_in_transaction", partitions=GAP_BEFORE),
    Case(
        "what is gone is older, but the start is not exact",
        "commit_may_be_missing",
        open=NOT_EXACT,
        partitions=GAP_BEFORE,
    ),
    Case(
        "what is gone is older, but nothing bounds the first batch",
        "commit_may_be_missing",
        open={"first_appended_after_ms": None},
        partitions=GAP_BEFORE,
    ),
    Case(
        "what is gone is older than the last end marker, and the start is not exact",
        "partition_not_in_transaction",
        open=NOT_EXACT,
        holder={"gap_end_ms": MARKED_MS - SKEW_MS - 1},
    ),
    Case("another partition of the state has a gap", "partition_not_in_transaction", another={"gap_end_ms": AFTER_MS}),
    of_unknown(
        "any partition of the state has a gap", "commit_may_be_missing", another={"gap_end_ms": AFTER_MS - SKEW_MS}
    ),
    of_unknown(
        "a gap that is 1 ms older than the data", "unknown_producer", another={"gap_end_ms": AFTER_MS - SKEW_MS - 1}
    ),
    Case(
        "a commit of any age has no marker, and the start is not exact",
        "commit_may_be_missing",
        open=NOT_EXACT,
        known={"without_marker": WithoutMarker(has_commit_of_any_age=True)},
    ),
    Case(
        "a commit of long ago has no marker, and the start is exact",
        "partition_not_in_transaction",
        known={"without_marker": WithoutMarker(has_commit_of_any_age=True)},
    ),
    Case(
        "the state's leader changed at the latest when the data can have been written",
        "commit_may_be_missing",
        holder={"rises": (LeaderEpochChange(BOUND_MS + SKEW_MS, NOW_MS),)},
    ),
    Case(
        "the state's leader changed 1 ms later",
        "partition_not_in_transaction",
        holder={"rises": (LeaderEpochChange(BOUND_MS + SKEW_MS + 1, NOW_MS),)},
    ),
    Case(
        "the state's leader changed at the earliest when the data can have been written",
        "commit_may_be_missing",
        holder={"rises": (LeaderEpochChange(1, AFTER_MS - SKEW_MS),)},
    ),
    Case(
        "the state's leader changed 1 ms earlier",
        "partition_not_in_transaction",
        holder={"rises": (LeaderEpochChange(1, AFTER_MS - SKEW_MS - 1),)},
    ),
    Case(
        "the state's leader changed long ago, and the start is not exact",
        "commit_may_be_missing",
        open=NOT_EXACT,
        holder={"rises": (LeaderEpochChange(1, 2),)},
    ),
    Case(
        "the state's leader changed, and no record was lost",
        "partition_not_in_transaction",
        holder={"rises": (LeaderEpochChange(1, NOW_MS),)},
        settings=NOTHING_LOST,
    ),
    Case(
        "another partition's leader changed",
        "partition_not_in_transaction",
        another={"rises": (LeaderEpochChange(1, NOW_MS),)},
    ),
    of_unknown(
        "any partition's leader changed", "commit_may_be_missing", another={"rises": (LeaderEpochChange(1, NOW_MS),)}
    ),
    Case(
        "its decision may be compacted away, and the state has a hole",
        "state_incomplete",
        holder={"gap_end_ms": AFTER_MS, "holes": [HOLE]},
    ),
)

CASES = (*HANGING, *OLDER, *EARLY, *NOT_DECODED, *INCOMPLETE, *PERHAPS_LOST)

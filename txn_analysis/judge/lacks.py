"""What a run can lack for an answer: one list, each of which has its remedy.

The words of a remedy are where it is made (`judge.settling`, `report.build`). `tests/proof/remedies` takes each
piece of evidence away from a real capture, does what the words say, and sees the lack gone; a kind without
such a test fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from txn_analysis.kafka.problems import ProblemKind


class Lack(StrEnum):
    """What is missing of an answer."""

    NO_LOGS = "no_logs"
    TWO_CLUSTERS = "two_clusters"
    CONTESTED_LINES = "contested_lines"  # lines that a client may have made would open a transaction
    LOG_NOT_WHOLE = "log_not_whole"  # batches are missing, damaged, or contradicted by another copy
    LINES_OF_OTHERS = "lines_of_others"  # in a dump, such as by 2>&1, that may have ended it
    TEXT_OF_CLIENTS = "text_of_clients"  # a dump prints what clients wrote, which may look like lines of the tool
    LOG_NOT_COPIED = "log_not_copied"  # only an earlier capture has the partition
    NO_CLOCK = "no_clock"  # of a broker, in any file
    WRITTEN_AFTER_COPY = "written_after_copy"  # by the timestamps
    NO_TIME = "no_time"  # of the data
    NO_STATE = "no_state"
    STATE_NOT_UNDERSTOOD = "state_not_understood"  # it was given, such as without its decoder
    STATE_PARTITIONS = "state_partitions"  # some were not given
    STATE_COUNT_WRONG = "state_count_wrong"  # ids lie where their hash does not put them
    STATE_COUNT_OPEN = "state_count_open"  # nobody said how many partitions it has, and several numbers fit
    STATE_OF_ANOTHER = "state_of_another"  # cluster, or a part of the right one
    STATE_NOT_SHOWN = "state_not_shown"  # to be of the cluster of the logs
    STATE_OLDER = "state_older"  # than the data, as far as anything shows
    STATE_OLDER_AND_PARTIAL = "state_older_and_partial"
    STATE_UNDECODABLE = "state_undecodable"
    STATE_OF_TOMORROW = "state_of_tomorrow"  # it has fields that this version does not know
    STATE_NOT_WHOLE = "state_not_whole"  # a file, or a part of one, may be missing
    STATE_CLEANED = "state_cleaned"  # no file is missing, and offsets are gone
    EXPORT_NOT_WHOLE = "export_not_whole"  # what a console export covers, it does not say
    HISTORY_GONE = "history_gone"  # older records of the state, which compaction took
    LOG_ENDS_EARLY = "log_ends_early"  # the state may know of an end that the log does not show
    NO_RULE = "no_rule"  # for a state of the coordinator
    OF_ANOTHER_VERSION = "of_another_version"  # a rule that this version does not know


class Settling(NamedTuple):
    """What some findings lack together, and what settles them: both in words; what to type stands in backticks.

    Evidence comes first. A word of the operator stands behind it, with the sentence that says when it is true.
    """

    lack: Lack
    missing: str
    text: str


TRUE_IF = {
    "state_copied_last": "if it was copied after all logs, from the leaders",
    "no_records_lost": "if no acknowledged record of these topics or of the state was ever lost",
}
"""When a word of the operator is true."""

LACK_OF_PROBLEM: dict[ProblemKind, Lack] = {
    ProblemKind.OFFSETS_IN_NO_FILE: Lack.LOG_NOT_WHOLE,
    ProblemKind.HOLE_IN_FILE: Lack.LOG_NOT_WHOLE,
    ProblemKind.BATCHES_MISSING: Lack.LOG_NOT_WHOLE,
    ProblemKind.INVALID_BATCH: Lack.LOG_NOT_WHOLE,
    ProblemKind.CONTESTED_LINE: Lack.TEXT_OF_CLIENTS,
    ProblemKind.UNPROVEN_START: Lack.TEXT_OF_CLIENTS,
    ProblemKind.UNPROVEN_END: Lack.TEXT_OF_CLIENTS,
    ProblemKind.TEXT_NOT_UNDERSTOOD: Lack.LOG_NOT_WHOLE,
    ProblemKind.LINES_OF_OTHERS: Lack.LINES_OF_OTHERS,
    ProblemKind.INPUT_PROBLEM: Lack.LOG_NOT_WHOLE,
    ProblemKind.EMPTY_BATCH: Lack.LOG_NOT_WHOLE,
    ProblemKind.LEADER_EPOCHS_FALL: Lack.LOG_NOT_WHOLE,
    ProblemKind.TORN_TAIL: Lack.LOG_NOT_WHOLE,
    ProblemKind.MAY_BE_HEADER_KEYS: Lack.TEXT_OF_CLIENTS,
    ProblemKind.HEADER_KEYS_MAY_OPEN: Lack.TEXT_OF_CLIENTS,
    ProblemKind.COPIES_DIFFER: Lack.LOG_NOT_WHOLE,
    ProblemKind.COPY_NOT_THE_LOG: Lack.LOG_NOT_WHOLE,
    ProblemKind.TAIL_IN_DOUBT: Lack.LOG_NOT_WHOLE,
    ProblemKind.ENDS_BEFORE_EARLIER_CAPTURE: Lack.LOG_NOT_WHOLE,
    ProblemKind.ENDS_BEFORE_SNAPSHOT: Lack.LOG_NOT_WHOLE,
    ProblemKind.SNAPSHOT_DISAGREES: Lack.LOG_NOT_WHOLE,
    ProblemKind.NOT_IN_CAPTURE: Lack.LOG_NOT_COPIED,
    ProblemKind.SEVERAL_TOPIC_IDS: Lack.LOG_NOT_WHOLE,
}
"""Of what is wrong with a log, what it lacks."""


def lack_of_log(problems: Iterable[str]) -> Lack:
    """What one log lacks, by its kinds of problems; another dump of the same files takes most of the others away."""
    of_name = {kind.value: lack for kind, lack in LACK_OF_PROBLEM.items()}
    lacks = {of_name.get(name) for name in problems}
    first = (Lack.LOG_NOT_COPIED, Lack.TEXT_OF_CLIENTS, Lack.LINES_OF_OTHERS)
    return next((lack for lack in first if lack in lacks), Lack.LOG_NOT_WHOLE)

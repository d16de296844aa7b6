"""What can be wrong with a log that was copied: the kinds by which a transaction's evidence is judged.

A command asks for them before it needs Arrow.
"""

from __future__ import annotations

from enum import StrEnum


class ProblemKind(StrEnum):
    """What a problem is, for whatever decides by it; the sentence beside it is for people alone."""

    OFFSETS_IN_NO_FILE = "offsets_in_no_file"  # between two files, or between a snapshot and the first file
    HOLE_IN_FILE = "hole_in_file"  # inside one file, whose positions go on
    BATCHES_MISSING = "batches_missing"  # inside one file, or at its start: its positions do not go on
    INVALID_BATCH = "invalid_batch"  # its checksum is wrong
    CONTESTED_LINE = "contested_line"  # two lines claim the position of one batch
    UNPROVEN_START = "unproven_start"  # the dump of the file may be text inside another file's record
    UNPROVEN_END = "unproven_end"  # its last record is not proven to be whole
    TEXT_NOT_UNDERSTOOD = "text_not_understood"  # bytes of a broker's file, behind its last batch
    LINES_OF_OTHERS = "lines_of_others"  # behind the last batch of a dump, which its tool does not print
    INPUT_PROBLEM = "input_problem"  # what reading said of the input that it is in
    EMPTY_BATCH = "empty_batch"  # its records are gone: the broker held for ended what began before it
    LEADER_EPOCHS_FALL = "leader_epochs_fall"  # a topic that was deleted and made again is glued to its past
    TORN_TAIL = "torn_tail"  # half a batch at the end of a file that is not the last one
    MAY_BE_HEADER_KEYS = "may_be_header_keys"  # batch lines that may be text of a record's header keys
    HEADER_KEYS_MAY_OPEN = "header_keys_may_open"  # and that would open a transaction
    COPIES_DIFFER = "copies_differ"  # and nothing tells which of them is the log
    COPY_NOT_THE_LOG = "copy_not_the_log"  # the capture's own copy was truncated by a newer leader
    TAIL_IN_DOUBT = "tail_in_doubt"  # a newer leader may have truncated the end of an earlier capture
    ENDS_BEFORE_EARLIER_CAPTURE = "ends_before_earlier_capture"
    ENDS_BEFORE_SNAPSHOT = "ends_before_snapshot"
    SNAPSHOT_DISAGREES = "snapshot_disagrees"  # a producer snapshot, with the batches below it
    NOT_IN_CAPTURE = "not_in_capture"  # only earlier captures hold the partition
    SEVERAL_TOPIC_IDS = "several_topic_ids"  # of a topic that was deleted, and of one created again under its name


# Lines that a client may have made, which open nothing here: a transaction may be open that nobody lists. Of two lines
# that claim one position, only one was followed.
MAY_HIDE_OPEN = frozenset({ProblemKind.CONTESTED_LINE, ProblemKind.HEADER_KEYS_MAY_OPEN})

# Compaction makes them as well.
HOLES = frozenset({ProblemKind.OFFSETS_IN_NO_FILE, ProblemKind.HOLE_IN_FILE, ProblemKind.EMPTY_BATCH})

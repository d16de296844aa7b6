"""Why a file, or a part of it, is not read: one list, each with what makes it readable.

`tests/proof/remedies` makes each of them of a real capture, does what the words say, and sees it read; a kind without
such a test fails.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Refused(StrEnum):
    """What stands where a text of Kafka's tools, a broker's file, or a part of one, should."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"  # a store, a disk or the file's compression says so
    CUT_LINE = "cut_line"
    CUT_BATCH = "cut_batch"
    CUT_HEADER = "cut_header"  # nothing follows a `Dumping` line
    NO_FIRST_LINE = "no_first_line"  # it begins inside a dump
    # Altered on its way.
    CR_LF = "cr_lf"
    UTF_16 = "utf_16"
    BYTE_ORDER_MARK = "byte_order_mark"
    FORMATTED_JSON = "formatted_json"
    LINES_IN_FRONT = "lines_in_front"
    STOPPED_IN_FRONT = "stopped_in_front"  # a line in front says that the tool stopped
    LINES_OF_OTHERS = "lines_of_others"  # in front of the first one of a section
    COLOURS = "colours"
    INDENTED = "indented"
    NUMBERED = "numbered"
    PREFIXED = "prefixed"
    SPACES_BEHIND = "spaces_behind"
    BROKEN_LINES = "broken_lines"
    GLUED_LINES = "glued_lines"
    # Tools and options that leave out what is asked.
    DEFAULT_FORMATTER = "default_formatter"
    OLD_SHALLOW = "old_shallow"
    OLD_DEEP = "old_deep"
    OLD_SNAPSHOT = "old_snapshot"
    NO_METADATA = "no_metadata"
    UNKNOWN_LINE = "unknown_line"
    # Of the right program, and not of a partition's log.
    NO_PARTITION = "no_partition"  # the path in the `Dumping` line does not say it
    NO_OFFSET = "no_offset"  # nor does the name of the file
    NO_FILE_NAMED = "no_file_named"
    SET_ASIDE = "set_aside"  # a deleted, future or stray log
    INDEX = "index"
    KRAFT = "kraft"
    NOT_DUMPED = "not_dumped"
    TABLE = "table"
    BROKERS_TEXT = "brokers_text"
    # Files.
    BROKERS_BINARY = "brokers_binary"
    NOT_AS_WRITTEN = "not_as_written"  # by a broker, into a file of this name
    ARCHIVE = "archive"
    REDPANDA = "redpanda"
    BOOKKEEPER = "bookkeeper"
    BINARY = "binary"
    UNKNOWN_TEXT = "unknown_text"
    # Manifests, which are not those of the files beside them.
    MANIFEST_NOT_UNDERSTOOD = "manifest_not_understood"
    NAMED_TWICE = "named_twice"
    NOT_NAMED = "not_named"
    NOT_THERE = "not_there"
    OTHER_SIZE = "other_size"
    OTHER_SUM = "other_sum"


class Refusal(NamedTuple):
    """Why something is not read, and what to do instead; both without a full stop."""

    kind: Refused
    reason: str
    remedy: str

    def __str__(self) -> str:
        """Both as sentences, but for the last full stop."""
        return f"{self.reason}. {self.remedy}"

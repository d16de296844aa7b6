"""Why a file, or a part of it, is not read: one list, each with what makes it readable.

`tests/proof/remedies` makes each of them of a real capture, does what the words say, and sees it read; a kind without
such a test fails.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from txn_analysis.kafka.names import MANIFEST_FILE

COPY_AGAIN, _COPY_ALL, _COPY_IT = "Copy the file again", "Copy the files again", "Copy it again"
_NEWER_TOOL = "Dump it again with kafka-dump-log 2.2 or newer (a newer tool reads the files of older brokers)"
_UNKNOWN_TEXT = "Give it the text of kafka-dump-log, or an export of __transaction_state, or leave the file out"
_JQ = (
    'jq -c \'(if type == "array" then .[] else . end) '
    '| {key: (.key | if has("type") then {type, data} else {version, data} end), value}\' FILE > NEW_FILE'
)
_OLD_FORMATTER = "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter"
_FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
_IN_FRONT = "lines that are none of Kafka's stand in front of the first one"


class Refusal(NamedTuple):
    """Why something is not read, and what to do instead; both without a full stop."""

    kind: Refused
    reason: str
    remedy: str

    def __str__(self) -> str:
        """Both as sentences, but for the last full stop."""
        return f"{self.reason}. {self.remedy}"


class Refused(Enum):
    """What stands where a text of Kafka's tools, a broker's file, or a part of one, should: the reason, and the remedy;
    `%s` stands for what is wrong, or what to do, in this case.
    """

    EMPTY = "the file is empty", "Copy it again, or leave it out"
    UNREADABLE = "%s", "%s"  # a store, a disk or the file's compression says so
    CUT_LINE = "the text ends inside this line", COPY_AGAIN
    CUT_BATCH = "%s", COPY_AGAIN
    CUT_HEADER = "the dump ends before this section's header line", COPY_AGAIN
    NO_FIRST_LINE = (
        "it begins inside a dump, after the `Dumping` line that says which partition it is of",
        "Give it the whole text of kafka-dump-log, from its first line on",
    )
    NO_FIRST_RECORD = "it begins inside a record of an export", "Export that partition again, from its first record on"
    # Altered on its way.
    CR_LF = "lines end in CR LF, as Windows writes them", "Change them to LF: tr -d '\\r' < FILE > NEW_FILE"
    UTF_16 = (
        "UTF-16 text, as PowerShell's redirection writes it",
        "Dump again from cmd.exe, or change it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE",
    )
    BYTE_ORDER_MARK = (
        "it begins with a byte order mark",
        r"Take it off: sed '1s/^\xEF\xBB\xBF//' FILE > NEW_FILE",
    )
    FORMATTED_JSON = "JSON that is not formatted as the console consumer writes it", f"Put it back: {_JQ}"
    LINES_IN_FRONT = f"{_IN_FRONT}, which is line %s", "%s"
    STOPPED_IN_FRONT = f"{_IN_FRONT}, which is line %s", "Dump it again, without 2>&1"  # one says that the tool stopped
    LINES_OF_OTHERS = "%s in front of its first one", "Dump the file again, without 2>&1"  # of a section
    COLOURS = "colours of a terminal stand %s", r"Take them off: sed 's/\x1b\[[0-9;]*[mK]//g' FILE > NEW_FILE"
    INDENTED = "spaces stand %s", r"Take them off: sed 's/^[ \t]*//' FILE > NEW_FILE"
    NUMBERED = (
        "numbers of lines stand %s",
        r"Take them off: sed -E 's/^ *[0-9]+[:[:space:]] ?//' FILE > NEW_FILE",
    )
    PREFIXED = "%s %s", "%s"
    SPACES_BEHIND = "its lines end in spaces", r"Take them off: sed 's/[ \t\r]*$//' FILE > NEW_FILE"
    BROKEN_LINES = "its lines are broken into several", "Dump the file again into a file, not from a window"
    GLUED_LINES = (
        "the next line follows the name of the file without a newline",
        r"Put it back: sed -E '/^Dumping /s/\.(log|snapshot|txnindex)/&\n/' FILE > NEW_FILE",
    )
    # Tools and options that leave out what is asked.
    DEFAULT_FORMATTER = (
        "an export of the default formatter, which prints the records of __transaction_state as raw bytes",
        f"Export again with --formatter {_OLD_FORMATTER} (0.11 to 3.9) or {_FORMATTER} (3.9 and newer)",
    )
    OLD_SHALLOW = "a dump by a tool before 2.0.1, which does not say which batches are end markers", _NEWER_TOOL
    OLD_DEEP = (
        "a deep dump by a tool before 2.2, which prints no batches",
        "Dump again without --deep-iteration/--print-data-log, or with kafka-dump-log 2.2 or newer",
    )
    OLD_SNAPSHOT = "a producer snapshot dumped by a tool before 1.1", _NEWER_TOOL
    NO_METADATA = (
        "dumped with --skip-record-metadata, which leaves out the end markers",
        "Dump again without --skip-record-metadata",
    )
    UNKNOWN_LINE = (
        "the first line of this %s is not one that kafka-dump-log 2.0.1 to 4.4 prints",
        "Dump the file again, with the tool of such a version: it reads the files of older brokers",
    )
    # Of the right program, and not of a partition's log.
    NO_PARTITION = (
        "the path %r does not say which partition it is of",
        "Dump the file by a path with its folder, such as orders-0/00000000000000000000.log",
    )
    NO_OFFSET = "%s is not named after an offset", "Copy it from the broker again, under its own name"
    NO_FILE_NAMED = (
        "this `Dumping` line names no file that kafka-dump-log dumps, or another line stands before its header",
        "Dump the file again by its own name, without 2>&1",
    )
    SET_ASIDE = "the folder %s is a %s log, not the partition's log", "Leave it out"
    INDEX = "the dump of an offset index (%s), which holds no batches", "Dump the .log files only"
    KRAFT = "a snapshot of KRaft metadata (%s), which holds no transactions", "Leave it out of the dump"
    NOT_DUMPED = "kafka-dump-log does not dump %s", "Name only .log, .snapshot and .txnindex files"
    TABLE = "a table of kafka-transactions.sh, which holds no log", "Give the files of the brokers, or dumps of them"
    BROKERS_TEXT = "a small text file of a broker's log directory, no dump", "Leave it out"
    # Files.
    BROKERS_BINARY = (
        "a binary %s of a broker's log directory, compressed, in a folder without segments, or of no known partition",
        "Give it as the broker has it, such as orders-0/00000000000000000000.log, or a dump of it by kafka-dump-log",
    )
    NOT_AS_WRITTEN = "not what a broker writes into %s", _UNKNOWN_TEXT
    ARCHIVE = "%s archive", "Unpack it, and give what was in it"
    REDPANDA = (
        "a segment of a Redpanda broker, whose format is not Apache Kafka's",
        "Only Apache Kafka's files are read here: ask Redpanda's own tool, rpk cluster txn describe-producers",
    )
    BOOKKEEPER = (
        "an entry log of Apache BookKeeper, as Apache Pulsar keeps its topics",
        "Only Apache Kafka's files are read here: ask Pulsar's own tool, pulsar-admin transactions",
    )
    BINARY = "binary data, not text", _UNKNOWN_TEXT
    UNKNOWN_TEXT = "not a text that this version knows", _UNKNOWN_TEXT
    # Manifests, which are not those of the files beside them.
    MANIFEST_NOT_UNDERSTOOD = "%s: %s", _COPY_ALL
    MANIFEST_OF_TOMORROW = (
        "%s: a manifest of version %s, made by a newer copy kit",
        "Use a newer txn-analysis, or copy the files again with the kit of this one",
    )
    NAMED_TWICE = "%s: it names a file twice", _COPY_ALL
    CUT_SHORT = "%s: the copy was cut short: it does not name %s", "Copy again: the same command goes on"
    NOT_NAMED = f"%s: {MANIFEST_FILE} does not name it", "Take it out of the folder, or copy again"
    NOT_THERE = f"%s: {MANIFEST_FILE} names it, and it is not there", _COPY_IT
    OTHER_SIZE = f"%s: it has %s bytes, and {MANIFEST_FILE} says %s", _COPY_IT
    OTHER_SUM = f"%s: its SHA-256 is not the one that {MANIFEST_FILE} says", _COPY_IT

    def of(self, *words: object, how: str = COPY_AGAIN) -> Refusal:
        """The refusal in this case.

        Args:
            words: what stands for `%s` in the reason.
            how: the remedy, of a kind that has none of its own.
        """
        reason, remedy = self.value
        return Refusal(self, reason % words, how if remedy == "%s" else remedy)

"""Which reading found what an input says, and where an earlier one was too trusting (decision 0132).

A reader that says something else of the same bytes than the last release did is another reading, and has its line here.
"""

from __future__ import annotations

from typing import NamedTuple

from txn_analysis.kafka.names import BINARY_GRAMMARS, CONSOLE_JSON, CONSOLE_TEXT, LOG, SNAPSHOT, STATE, TXNINDEX

FIRST_READING = 1
"""That of 1.0.0, whose rows say no number."""


class ChangedReading(NamedTuple):
    """From a number on, sections of a kind are read otherwise.

    `doubt` says what an earlier reading believed that today's does not, as the end of a sentence about the file: what
    such a reading found counts as a file that is not whole, of an export as undecodable records. None where an earlier
    reading believed less: of what it understood whole, today's says the same. A doubt is for batches (`LOG`, `STATE`)
    and exports; other kinds know no such gap. `is_of_rejected`: it is only of files of which something was rejected;
    `is_of_lacking`: only of sections in which a batch has fewer record lines than it counts.
    """

    version: int
    kind: str
    doubt: str | None
    is_of_brokers_files: bool = False
    is_of_rejected: bool = False
    is_of_lacking: bool = False

    def is_of(self, kind: str, grammar: str | None, version: int | None) -> bool:
        """Whether what an earlier reading found of a section is another one's."""
        is_later = self.version > (version or FIRST_READING)
        return is_later and kind == self.kind and (self.is_of_brokers_files or grammar not in BINARY_GRAMMARS)


CHANGED_READINGS = (
    ChangedReading(2, CONSOLE_TEXT, "takes lines for records that may be a part of somebody's id"),
    ChangedReading(2, CONSOLE_JSON, "does not compare the records with the number that the consumer counted"),
    # The names of states that tools of Kafka 4.4 print were undecodable, and lines that others print were rejected.
    *(ChangedReading(2, kind, None) for kind in (SNAPSHOT, TXNINDEX)),
    # Among the rejected lines can be one that says that the tool stopped, behind which it went on reading.
    *(
        ChangedReading(2, kind, "goes on behind a line that says that the tool stopped", is_of_rejected=True)
        for kind in (STATE, LOG)
    ),
    # A deep dump that was cut shows it by its last batch. The stored rows say that a batch of the section lacks lines,
    # not whether it is the last: this doubts also a whole dump in which records of a client hide lines of their own,
    # until it is given again. In a dump of the state 1.0.0 counted the lines that lack as records not decoded.
    ChangedReading(2, LOG, "goes on where a dump shows that it was cut", is_of_lacking=True),
    # A record line of tool 2.8 in which a number has more digits than its field can have is none any more, as in dumps
    # of the state before. It has no line here: no tool prints one, and a client gains nothing by it.
)

READING_VERSION = max(change.version for change in CHANGED_READINGS)
"""The number of today's reading: of the last line above."""


def is_read_otherwise(
    kind: str, grammar: str | None, version: int | None, *, is_understood: bool, is_lacking: bool = False
) -> bool:
    """Whether today's reading of a section is another one than that of a number; None is of 1.0.0.

    `is_understood` says that nothing of its file was rejected then, nor is wrong with it; `is_lacking` that one of its
    batches has fewer record lines than it counts.
    """
    is_changed = any(change.is_of(kind, grammar, version) for change in CHANGED_READINGS)
    doubt = doubt_of(kind, grammar, version, is_understood=is_understood, is_lacking=is_lacking)
    return doubt is not None or (is_changed and not is_understood)


def doubt_of(
    kind: str, grammar: str | None, version: int | None, *, is_understood: bool, is_lacking: bool = False
) -> str | None:
    """What a reading believed of a section that today's does not; None where nothing. Arguments as above."""
    changes = (change for change in CHANGED_READINGS if change.is_of(kind, grammar, version))
    fitting = (c for c in changes if not ((c.is_of_rejected and is_understood) or (c.is_of_lacking and not is_lacking)))
    return next((change.doubt for change in fitting if change.doubt is not None), None)


def doubt_in_words(doubt: str) -> str:
    """Why what an earlier reading found does not count in full, and what to do about it; the end of a sentence."""
    return f"was read by an earlier version, which {doubt}: audit the file again"

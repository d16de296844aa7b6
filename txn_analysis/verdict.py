"""The five answers that an open transaction can get, and what each means to the person who reads it."""

from __future__ import annotations

from enum import StrEnum
from typing import TypedDict


class Verdict(StrEnum):
    """What becomes of an open transaction, from harmless to worst."""

    IN_PROGRESS = "in_progress"  # last written at most transaction.max.timeout.ms + 5 minutes ago
    COORDINATED = "coordinated"  # late, but the coordinator lists the partition and will write the marker
    INCONCLUSIVE = "inconclusive"  # the evidence does not allow an answer; what is missing is named
    SUSPECT = "suspect"  # something is wrong, but an abort marker is not the remedy
    HANGING = "hanging"  # nobody can write the end marker any more

    @property
    def severity(self) -> int:
        """0 for the most harmless; orders findings and decides the exit code."""
        return _SEVERITIES[self]

    @property
    def meaning(self) -> str:
        """What it says, in half a sentence."""
        return _WORDS[self]["meaning"]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _WORDS[self]["remedy"]


_SEVERITIES = {verdict: severity for severity, verdict in enumerate(Verdict)}


class _Words(TypedDict):
    meaning: str
    remedy: str


_WORDS: dict[Verdict, _Words] = {
    Verdict.HANGING: {
        "meaning": "nobody can write the end marker any more",
        "remedy": "Write the plan as a script (the verb `abort-plan`, `--format commands`), and read it. End the "
        "producers that it names, run it, then copy the files and audit again.",
    },
    Verdict.SUSPECT: {
        "meaning": "something is wrong and you must look, but an abort is not the remedy",
        "remedy": "Do not abort: the data may be acknowledged, or belong to a transaction that is still running. Look "
        "at the coordinator or at the application, as the rule says.",
    },
    Verdict.INCONCLUSIVE: {
        "meaning": "the evidence does not allow an answer; the report names what is missing",
        "remedy": "Get what is missing, and audit again. Until then treat the transaction as live.",
    },
    Verdict.COORDINATED: {
        "meaning": "late, but its coordinator lists the partition and will write the end marker",
        "remedy": "Nothing. If the next audit still shows it, look at the coordinator's broker.",
    },
    Verdict.IN_PROGRESS: {
        "meaning": "last written at most transaction.max.timeout.ms + 5 minutes ago",
        "remedy": "Nothing.",
    },
}

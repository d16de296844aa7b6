"""The five answers that an open transaction can get, and what each means to the person who reads it."""

from __future__ import annotations

from enum import StrEnum
from typing import TypedDict


class Verdict(StrEnum):
    """What becomes of an open transaction, from harmless to worst."""

    IN_PROGRESS = "in_progress"  # written to within transaction.max.timeout.ms + 5 minutes
    COORDINATED = "coordinated"  # late, but the coordinator lists the partition and will write the marker
    INCONCLUSIVE = "inconclusive"  # the evidence does not allow an answer; what is missing is named
    SUSPECT = "suspect"  # something is wrong, but an abort marker is not the remedy
    HANGING = "hanging"  # nobody will ever write the marker

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
        "meaning": "nobody will ever write the end marker",
        "remedy": "Print the plan (the verb `abort-plan`, `--format commands`), check what stands above each "
        "command, send it, then copy the logs again and audit once more.",
    },
    Verdict.SUSPECT: {
        "meaning": "something is wrong and a person must look, but an abort marker is not the remedy",
        "remedy": "Look at the coordinator or at the application, as the rule says. Do not abort: the data may be "
        "acknowledged, or belong to a transaction that is still running.",
    },
    Verdict.INCONCLUSIVE: {
        "meaning": "the evidence does not allow an answer; what is missing is named",
        "remedy": "Get what is missing and audit again. Until then treat it as alive.",
    },
    Verdict.COORDINATED: {
        "meaning": "late here, but the coordinator lists the partition and will write the marker",
        "remedy": "Nothing. If it is still here in the next audit, look at the coordinator's broker.",
    },
    Verdict.IN_PROGRESS: {
        "meaning": "written to within transaction.max.timeout.ms + 5 minutes",
        "remedy": "Nothing.",
    },
}

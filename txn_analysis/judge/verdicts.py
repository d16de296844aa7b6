"""The five answers that an open transaction can get."""

from enum import StrEnum


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
        return list(Verdict).index(self)

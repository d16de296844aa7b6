"""What an early warning is: something that does not hang yet, and will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    from txn_analysis.config import Settings

NEAR = 0.75
"""Of a bound: from here on it is near."""


@dataclass(frozen=True, kw_only=True)
class EarlyWarning:
    """A kind of warning, and its words.

    Attributes:
        kind: as reports and metrics print it; also the name of its file.
        meaning: what it warns of, in half a sentence.
        text: what was seen, with `{score}` for the number that made it.
    """

    kind: str
    meaning: str
    text: str


@dataclass(frozen=True)
class Known:
    """What a warning about ids knows beside their records: the settings, and when the files were copied."""

    settings: Settings
    as_of: Column


@dataclass(frozen=True, kw_only=True)
class IdWarning(EarlyWarning):
    """A warning about the last record of a transactional id, one row of `judge.coordinator.current_states`.

    `when` is its condition, with the column `median_ms` of all timeouts beside the record's own; `score` a whole number
    by which the worst id is found: higher is worse.
    """

    when: Callable[[Known], Column]
    score: Callable[[Known], Column]


@dataclass(frozen=True, kw_only=True)
class AbortWarning(EarlyWarning):
    """A warning about ids whose transactions were aborted by the coordinator again and again.

    `when` is asked of each PrepareAbort record that raised the epoch, with `after`, what came after its completion.
    """

    when: Callable[[], Column]

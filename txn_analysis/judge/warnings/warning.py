"""What an early warning is: something that does not hang yet, and will."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.settings import Settings

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


class LastRecord(NamedTuple):
    """What warnings ask of the last record of a transactional id, as far as it was decoded."""

    state: str | None
    producer_epoch: int | None
    timeout_ms: int | None
    last_update_ms: int | None
    start_ms: int | None


class Abort(NamedTuple):
    """What warnings ask of a PrepareAbort record that raised the epoch, and of what came after its completion."""

    start_ms: int | None
    timeout_ms: int | None
    last_update_ms: int | None
    after_state: str | None
    after_update_ms: int | None


@dataclass(frozen=True)
class Known:
    """What a warning about ids knows beside their last records.

    Attributes:
        settings: as for the audit.
        as_of_ms: when the files were copied; None where no broker's clock speaks.
        median_ms: of the timeouts of all ids that are not gone; None where there are none.
    """

    settings: Settings
    as_of_ms: int | None
    median_ms: int | None


@dataclass(frozen=True, kw_only=True)
class IdWarning(EarlyWarning):
    """A warning about the last record of a transactional id.

    `when` is its condition; `score` a whole number by which the worst id is found, higher is worse, which is known
    wherever the condition holds.
    """

    when: Callable[[LastRecord, Known], bool]
    score: Callable[[LastRecord, Known], int | None]


@dataclass(frozen=True, kw_only=True)
class AbortWarning(EarlyWarning):
    """A warning about ids whose transactions were aborted by the coordinator again and again.

    `when` is asked of each PrepareAbort record that raised the epoch.
    """

    when: Callable[[Abort], bool]

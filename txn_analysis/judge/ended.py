"""Why an ended transaction ended, of all the transactional ids that had its producer id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.judge.endings import Ending, IdHistory, ending_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.judge.endings import EndedTransaction


class Ended(NamedTuple):
    """An ended transaction with the transactional id that explains its end, and that end."""

    transaction: EndedTransaction
    transactional_id: str | None
    ending: Ending


def ended_with(transaction: EndedTransaction, histories: Mapping[str, IdHistory], max_clock_skew_ms: int) -> Ended:
    """Of several ids that had the producer id, the one that explains the end best.

    Args:
        transaction: the ended one.
        histories: of the ids that have, or had, its producer id, by their names.
        max_clock_skew_ms: by how much two brokers' clocks may differ.
    """
    known: list[tuple[str | None, IdHistory]] = [*sorted(histories.items())] or [(None, IdHistory([]))]
    endings = [(name, ending_of(transaction, history, max_clock_skew_ms)) for name, history in known]
    name, ending = max(endings, key=lambda found: found[1].cause.confidence.rank)
    return Ended(transaction, name, ending)

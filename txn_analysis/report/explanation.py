"""The explanation of one open transaction: its timeline, the rules that were asked, its cause; as text and as data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from txn_analysis.report.model import CauseItem, Item
from txn_analysis.report.terminal import wrapped
from txn_analysis.text.escape import escape
from txn_analysis.text.words import iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WIDTH = 110
_INDENT = "   "


class EventItem(Item):
    """One event of a timeline; `offset` is None for a record of the coordinator, `clock` says whose time it is."""

    at_ms: int | None
    clock: str
    offset: int | None
    kind: str
    text: str


class RuleItem(Item):
    """One rule that was asked, and why it fired or did not."""

    rule: str
    verdict: str
    has_fired: bool
    reason: str


class Explanation(Item):
    """Why one open transaction has its verdict; `are_batches_kept` is false where its data is gone."""

    run_id: str
    topic: str
    partition: int
    producer_id: int
    txn_start_offset: int
    transactional_id: str | None
    verdict: str
    rule: str
    cause: CauseItem | None
    events: tuple[EventItem, ...]
    rules: tuple[RuleItem, ...]
    would_change: tuple[str, ...]
    are_batches_kept: bool

    @property
    def title(self) -> str:
        """Where it is, and whose; escaped."""
        named = "no transactional id" if self.transactional_id is None else f"transactional id {self.transactional_id}"
        place = f"{self.topic}-{self.partition}, offset {self.txn_start_offset}"
        return escape(f"{place}: producer id {self.producer_id}, {named}")


def explanations_json(explained: Iterable[Explanation]) -> str:
    """A list of objects; ASCII only."""
    return json.dumps([item.model_dump(mode="json") for item in explained], indent=2, ensure_ascii=True) + "\n"


def explanations_text(explained: Iterable[Explanation]) -> str:
    """All explanations, one after the other."""
    return "\n".join("".join(line + "\n" for line in _lines(item)) for item in explained)


def _lines(item: Explanation) -> Iterator[str]:
    yield item.title
    yield f"{_INDENT}{item.verdict} by rule {item.rule}"
    yield from _cause_lines(item.cause)
    yield ""
    yield f"{_INDENT}timeline, in the order of the log; times by the brokers' clocks, unless (client) is said. Between"
    yield f"{_INDENT}two broker times in the log nothing tells which came first, a batch or a record of the coordinator"
    if not item.are_batches_kept:
        yield from _labelled("", "no batch of it is kept: it is gone from the files")
    for event in item.events:
        where = "coordinator" if event.offset is None else f"offset {event.offset}"
        whose = " (client)" if event.clock == "client" else ""
        label = f"{iso_utc(event.at_ms)}{whose}"
        yield from _labelled(f"{label:<33}{where:<14}", escape(event.text))
    yield ""
    yield f"{_INDENT}rules, in their order"
    for rule in item.rules:
        mark = f"FIRED, {rule.verdict}" if rule.has_fired else "no"
        yield from _labelled(f"{rule.rule:<33}", escape(f"{mark}: {rule.reason}"))
    if item.would_change:
        yield ""
        yield f"{_INDENT}what would change the verdict"
        for evidence in item.would_change:
            yield from _labelled("- ", escape(evidence))


def _cause_lines(cause: CauseItem | None) -> Iterator[str]:
    if cause is None:
        yield f"{_INDENT}cause: not known, for no __transaction_state of these logs was given"
        return
    yield f"{_INDENT}cause: {cause.name} ({cause.confidence})"
    for fact in cause.evidence_for:
        yield from _labelled("+ ", escape(fact))
    for doubt in cause.evidence_against:
        yield from _labelled("- ", escape(doubt))


def _labelled(label: str, text: str) -> list[str]:
    first = f"{_INDENT}{_INDENT}{label}"
    return wrapped(text, _WIDTH, first, " " * min(len(first), 53))

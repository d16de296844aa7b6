"""No sentence says `None`: each fact is taken away from each story of the proof table, and everything is said."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tests.judge.cases import Case
from tests.judge.test_proof_table import CASES
from txn_analysis.judge.causes import READINGS
from txn_analysis.judge.facts import Facts
from txn_analysis.judge.rules import RULES

PARTS = ("open", "partition", "coordinator", "lateness", "state", "log", "loss")


def without_one(facts: Facts) -> Iterator[tuple[str, Facts]]:
    """The facts as they are, and with each value of each part taken away that may be unknown."""
    yield "nothing", facts
    for part in PARTS:
        own = getattr(facts, part)
        for name in _names(own):
            if getattr(own, name) is not None and _may_be_unknown(own, name):
                yield f"{part}.{name}", replace(facts, **{part: _with(own, name)})
    for name in _names(known := getattr(facts.coordinator, "origins", None)):
        if facts.coordinator is not None and getattr(known, name) is not None and _may_be_unknown(known, name):
            less = facts.coordinator._replace(origins=_with(known, name))
            yield f"origins.{name}", replace(facts, coordinator=less)


def _names(part: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(part)) if is_dataclass(part) else getattr(part, "_fields", ())


def _with(part: Any, name: str) -> Any:
    less: dict[str, Any] = {name: None}
    return part._replace(**less) if hasattr(part, "_replace") else replace(part, **less)


def _may_be_unknown(part: Any, name: str) -> bool:
    annotation = str(type(part).__annotations__[name])
    return "None" in annotation or "Truth" in annotation


def said_of(facts: Facts) -> Iterator[str]:
    """All that any rule and any cause says where it is asked."""
    for rule in RULES:
        if rule.holds_for(facts):
            yield from (*rule.evidence_in(facts), *rule.missing_in(facts), *rule.would_change_in(facts))
        else:
            yield rule.why_not(facts)
    for reading in READINGS:
        if reading.confidence(facts) is not None:
            yield from reading.cause.evidence_in(facts)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_sentence_says_none(case: Case) -> None:
    wrong = {
        f"{what}: {sentence}"
        for what, facts in without_one(case.judged().facts)
        for sentence in said_of(facts)
        if "None" in sentence
    }
    assert not wrong

"""No sentence says `None`: each fact is taken away from each story of the proof table, and everything is said."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from tests.tools.judged_cases import Case
from tests.unit.judge.test_proof_table import CASES
from txn_analysis.judge.case import Case as Evidence
from txn_analysis.judge.causes import DIAGNOSES
from txn_analysis.judge.rules import RULES
from txn_analysis.judge.words import WORDS


def without_one(case: Evidence) -> Iterator[tuple[str, Evidence]]:
    """The evidence as it is, and with each value of each part taken away that may be unknown."""
    yield "nothing", case
    for part in ("txn", "log", "view"):
        own = getattr(case, part)
        for name in _names(own):
            if getattr(own, name) is not None and _may_be_unknown(own, name):
                yield f"{part}.{name}", replace(case, **{part: _with(own, name)})
    origins = None if case.view is None else case.view.origins
    for name in _names(origins):
        if case.view is not None and getattr(origins, name) is not None and _may_be_unknown(origins, name):
            yield f"origins.{name}", replace(case, view=case.view._replace(origins=_with(origins, name)))
    for name in ("as_of_ms", "newest_ms"):
        yield f"moments.{name}", replace(case, moments=case.moments._replace(**{name: None}))


def _names(part: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(part)) if is_dataclass(part) else getattr(part, "_fields", ())


def _with(part: Any, name: str) -> Any:
    less: dict[str, Any] = {name: None}
    return part._replace(**less) if hasattr(part, "_replace") else replace(part, **less)


def _may_be_unknown(part: Any, name: str) -> bool:
    annotation = str(type(part).__annotations__[name])
    return "None" in annotation or "Truth" in annotation


def said_of(case: Evidence) -> Iterator[str]:
    """All that any rule and any cause says where it is asked."""
    for rule in RULES:
        words = WORDS[rule.name]
        if rule.holds_for(case):
            yield from (*words.evidence_in(case), *words.missing_in(case), *words.would_change_in(case))
        else:
            yield words.why_not(case)
    for reading in DIAGNOSES:
        if reading.confidence(case) is not None:
            yield from reading.cause.evidence_in(case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_sentence_says_none(case: Case) -> None:
    wrong = {
        f"{what}: {sentence}"
        for what, evidence in without_one(case.judged().case)
        for sentence in said_of(evidence)
        if "None" in sentence
    }
    assert not wrong

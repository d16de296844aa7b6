"""Pages of docs/ that are made: one for each verdict and rule, from the rule book and the proof table."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from tests.judge.test_proof_table import CASES
from tests.report import rows
from txn_analysis.judge.rules import OTHERWISE, RULES, VERDICTS
from txn_analysis.judge.verdicts import Verdict
from txn_analysis.judge.words import evidence, missing_evidence
from txn_analysis.report.build import build_report
from txn_analysis.report.finding_text import block_lines
from txn_analysis.report.rule_book import RULE_NOTES, VERDICT_NOTES

if TYPE_CHECKING:
    from tests.judge.cases import Case

_ALL_RULES = (*RULES, OTHERWISE)
_MADE = "<!-- Made by `make docs` from txn_analysis/report/rule_book.py and the proof table in tests/judge. -->"
_WIDTH = 100
_STORY = "Producer 7 last wrote to orders-0 at 07:00, and the files were copied at 08:00. What is special here: {}."


def made_pages() -> dict[str, str]:
    """The made pages by their path under docs/."""
    rules = {f"rules/{name}.md": _rule_page(name) for name in RULE_NOTES}
    return rules | {f"verdicts/{verdict.value}.md": _verdict_page(verdict) for verdict in Verdict}


def _rule_page(name: str) -> str:
    note, verdict = RULE_NOTES[name], VERDICTS[name]
    case = next(case for case in CASES if case.rule == name)
    number = next(
        (f"Rule {n} of {len(RULES)}" for n, rule in enumerate(RULES, start=1) if rule.name == name), "No rule"
    )
    return f"""{_MADE}

# `{name}`

{_sentence(note.meaning)}

{number}; the verdict is [`{verdict.value}`](../verdicts/{verdict.value}.md). [All rules](../rules.md).

## Why

{_wrapped(note.reason)}

## What to do

{_wrapped(note.remedy)}

## An example

{_wrapped(_STORY.format(case.name))}

```
{_example(case)}
```
"""


def _verdict_page(verdict: Verdict) -> str:
    note = VERDICT_NOTES[verdict]
    rules = [rule.name for rule in _ALL_RULES if rule.verdict is verdict]
    listed = "\n".join(f"| [`{name}`](../rules/{name}.md) | {RULE_NOTES[name].meaning} |" for name in rules)
    case = next(case for case in CASES if VERDICTS[case.rule] is verdict)
    return f"""{_MADE}

# `{verdict.value}`

{_sentence(note.meaning)}

## What to do

{_wrapped(note.remedy)}

## Which rules give it

| rule | it says |
|---|---|
{listed}

The first rule that holds decides; [all of them in order](../rules.md).

## An example

```
{_example(case)}
```
"""


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 118, break_long_words=False, break_on_hyphens=False)


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."


def _example(case: Case) -> str:
    """The finding of one line of the proof table, as a report shows it."""
    judged = case.judged()
    row = rows.finding() | _known(judged) | {"verdict": VERDICTS[case.rule].value}
    row |= {"evidence": evidence(judged), "missing_evidence": missing_evidence(judged)}
    health = rows.health(partition=0, end_offset=200, last_stable_offset=100)
    report = build_report(rows.run(run_id="RUN", as_of_ms=case.as_of_ms), [], [health], [row])
    lines = block_lines(report, report.findings[0], 1, _WIDTH, "")
    return "\n".join(line.text.rstrip() for line in lines)


def _known(judged: rows.Row) -> dict[str, Any]:
    columns = rows.finding()
    return {name: value for name, value in judged.items() if name in columns and name != "run_id"}

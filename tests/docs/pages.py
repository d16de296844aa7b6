"""What is made in docs/: a page for each verdict and rule, and the tables of rules and the like.

Made of the words of the judge's objects and of the proof table.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import txn_analysis
from tests.docs.format_tables import (
    explanation_fields,
    machine_fields,
    offset_fields,
    owner_fields,
    plan_fields,
    prune_fields,
    report_fields,
    row_columns,
    stats_fields,
)
from tests.docs.tables_page import reference
from tests.judge.test_proof_table import CASES
from tests.report import rows
from txn_analysis.judge.applications import NO_FRAMEWORK, SHAPES
from txn_analysis.judge.causes import CAUSES
from txn_analysis.judge.early_warning import WARNINGS
from txn_analysis.judge.finding import finding_of
from txn_analysis.judge.rules import RULES
from txn_analysis.report.build import build_report
from txn_analysis.report.finding_text import facts, lines_of, what
from txn_analysis.report.terminal import Line
from txn_analysis.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.judge.cases import Case
    from txn_analysis.judge.rules.rule import Rule

_MADE = "<!-- Made by `make docs` from {source} and the proof table in tests/judge. -->"
_TABLE = re.compile(r"(?<=<!-- made )([a-z-]+)( -->\n)[^<]*(?=<!-- /made -->)")
_AT_THE_SITE = re.compile(r"<!-- made ([a-z-]+) by make site -->\n")
_WIDTH = 100
_STORY = "Producer 7 last wrote to orders-0 at 07:00, and the files were copied at 08:00. What is special here: {}."


def _file_of(rule: Rule) -> Path:
    return Path(inspect.getfile(rule.when)).relative_to(Path(txn_analysis.__file__).parents[1])


def made_pages() -> dict[str, str]:
    """The made pages by their path under docs/."""
    rules = {f"rules/{rule.name}.md": _rule_page(number, rule) for number, rule in enumerate(RULES, start=1)}
    verdicts = {f"verdicts/{verdict.value}.md": _verdict_page(verdict) for verdict in Verdict}
    return rules | verdicts


def site_pages() -> dict[str, str]:
    """The pages that the site alone has, or has with more tables than the repository, by their path under docs/."""
    formats = Path(__file__).parents[2] / "docs/data-formats.md"
    whole = _AT_THE_SITE.sub(lambda found: _TABLES[found[1]](), formats.read_text(encoding="utf-8"))
    return {"data-formats.md": whole, "tables.md": reference()}


def with_tables(text: str) -> str:
    """A page with its made tables as they are now; each stands between `<!-- made NAME -->` and `<!-- /made -->`."""
    return _TABLE.sub(lambda found: f"{found[1]}{found[2]}{_TABLES[found[1]]()}", text)


def _table(head: tuple[str, ...], cells: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(line)} |" for line in cells)]
    return "".join(f"{line}\n" for line in lines)


def _rules_table() -> str:
    cells = (
        (str(number), f"[`{rule.name}`](rules/{rule.name}.md)", rule.verdict.value, rule.condition or rule.meaning)
        for number, rule in enumerate(RULES, start=1)
    )
    return _table(("#", "rule", "verdict", "when"), cells)


def _glossary_of_rules() -> str:
    cells = ((f"[`{rule.name}`](rules/{rule.name}.md)", rule.meaning) for rule in sorted(RULES, key=lambda r: r.name))
    return _table(("rule", "it says"), cells)


def _causes_table() -> str:
    known = (cause for cause in CAUSES if cause.name != "unexplained")
    return _table(
        ("cause", "what happened", "what prevents it"), ((f"`{c.name}`", c.story, c.prevention) for c in known)
    )


def _glossary_of_causes() -> str:
    return _table(
        ("cause", "it says"), ((f"`{c.name}`", c.meaning) for c in sorted(CAUSES, key=lambda cause: cause.name))
    )


def _warnings_table() -> str:
    cells = ((f"`{w.kind}`", w.meaning) for w in sorted(WARNINGS, key=lambda warning: warning.kind))
    return _table(("early warning", "it says"), cells)


def _owners_table() -> str:
    """One row is one framework: the parts of its ids, what of it is stopped, and how its owners end a transaction."""
    forms = defaultdict[str, list[str]](list)
    for shape in SHAPES:
        forms[shape.framework.name].append(", ".join(("application", *shape.parts)))
    # What is said of all of a name: by what it stops, one of a name differs from another.
    every = (*(shape.framework for shape in SHAPES), NO_FRAMEWORK)
    frameworks = {one.name: one for one in reversed(every)}
    frameworks = {one.name: frameworks[one.name] for one in every}
    stops = defaultdict[str, dict[str, None]](dict)
    for framework in every:
        stops[framework.name][re.sub(r"{(\w+)}", r"*\1*", framework.stop)] = None
    cells = (
        (
            name,
            "; or ".join(forms[name]) or "-",
            " ".join(map(_sentence, stops[name])),
            _sentence(framework.comes_back),
            f"{_sentence(framework.costs)}" if framework.costs else "-",
        )
        for name, framework in frameworks.items()
    )
    return _table(
        ("looks like", "its ids are made of", "what is stopped", "how its owner ends it", "what the timeout costs"),
        cells,
    )


_TABLES = {
    "owners": _owners_table,
    "format-plan": lambda: _table(("field", "type", "it says"), plan_fields()),
    "format-report": lambda: _table(("object", "its fields", "it says"), report_fields()),
    "format-explain": lambda: _table(("object", "its fields", "it says"), explanation_fields()),
    "format-offset": lambda: _table(("object", "its fields", "it says"), offset_fields()),
    "format-prune": lambda: _table(("object", "its fields", "it says"), prune_fields()),
    "format-doctor": lambda: _table(("object", "its fields", "it says"), machine_fields()),
    "format-who": lambda: _table(("object", "its fields", "it says"), owner_fields()),
    "format-stats": lambda: _table(("object", "its fields", "it says"), stats_fields()),
    "format-rows": lambda: _table(("verb", "columns, in order"), row_columns()),
    "rules": _rules_table,
    "causes": _causes_table,
    "glossary-rules": _glossary_of_rules,
    "glossary-causes": _glossary_of_causes,
    "glossary-warnings": _warnings_table,
}


def _rule_page(number: int, rule: Rule) -> str:
    case = next(case for case in CASES if case.rule == rule.name)
    verdict = f"[`{rule.verdict.value}`](../verdicts/{rule.verdict.value}.md)"
    because = _wrapped(rule.reason) + (f"\n\n{_wrapped(rule.background)}" if rule.background else "")
    return f"""{_MADE.format(source=_file_of(rule))}

# `{rule.name}`

{_sentence(rule.meaning)}

Rule {number} of {len(RULES)}; the verdict is {verdict}. [All rules](../rules.md).

## Why

{because}

## What to do

{_wrapped(rule.remedy)}

## An example

{_wrapped(_STORY.format(case.name))}

```
{_example(case)}
```
"""


def _verdict_page(verdict: Verdict) -> str:
    own = [rule for rule in RULES if rule.verdict is verdict]
    listed = "\n".join(f"| [`{rule.name}`](../rules/{rule.name}.md) | {rule.meaning} |" for rule in own)
    names = {rule.name for rule in own}
    case = next(case for case in CASES if case.rule in names)
    return f"""{_MADE.format(source="txn_analysis/verdict.py")}

# `{verdict.value}`

{_sentence(verdict.meaning)}

## What to do

{_wrapped(verdict.remedy)}

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
    finding = finding_of(case.judged(), "RUN", "FINDING", None)
    shown = finding._replace(cause=None)  # why it is open has a page of its own
    health = rows.health(partition=0, end_offset=200, last_stable_offset=100)
    report = build_report(rows.run(run_id="RUN", as_of_ms=case.as_of_ms), [], [health], [shown])
    lines = [Line(f"1. {what(report.findings[0])}"), *lines_of(facts(report, report.findings[0]), _WIDTH)]
    return "\n".join(line.text.rstrip() for line in lines)

"""What is made in docs/: all that is said of a verdict, a rule or a cause, and tables of the like.

Made of the words of the judge's objects and of the proof table.
"""

import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pydantic import BaseModel

from tests.systems.e2e.transcript import printed_on, sections
from tests.tools import report_rows as rows
from tests.tools.docs.format_tables import (
    objects,
    plan_fields,
    row_columns,
)
from tests.tools.docs.tables_page import reference
from tests.tools.repository import ROOT
from tests.unit.judge.test_proof_table import CASES
from txn_analysis.cli.doctor import Machine
from txn_analysis.judge.applications import NO_FRAMEWORK, SHAPES
from txn_analysis.judge.causes import CAUSES
from txn_analysis.judge.early_warning import WARNINGS
from txn_analysis.judge.finding import finding_of
from txn_analysis.judge.rules import RULES, Rule
from txn_analysis.judge.words import WORDS
from txn_analysis.questions.explain import Explanation
from txn_analysis.questions.offset_answer import OffsetAnswer
from txn_analysis.questions.owners import OwnerAnswer
from txn_analysis.questions.pruning import PruneAnswer
from txn_analysis.questions.stats_answer import StatsAnswer
from txn_analysis.report.build import build_report
from txn_analysis.report.finding_text import facts, scene_of, what
from txn_analysis.report.model import AuditReport
from txn_analysis.report.terminal import Line, lines_of
from txn_analysis.verdict import Verdict

_TABLE = re.compile(r"(?<=<!-- made )([a-z-]+)( -->\n).*?(?=<!-- /made -->)", re.DOTALL)
_AT_THE_SITE = re.compile(r"<!-- made ([a-z-]+) by make site -->\n")
_WIDTH = 100
_SHOWN = "partition_not_in_transaction"  # the rule of which a finding is shown


def site_pages() -> dict[str, str]:
    """The pages that the site alone has, or has with more tables than the repository, by their path under docs/."""
    formats = ROOT / "docs/data-formats.md"
    whole = _AT_THE_SITE.sub(lambda found: _TABLES[found[1]](), formats.read_text(encoding="utf-8"))
    return {"data-formats.md": whole, "tables.md": reference()}


def with_tables(text: str) -> str:
    """A page with its made tables as they are now; each stands between `<!-- made NAME -->` and `<!-- /made -->`."""
    return _TABLE.sub(lambda found: f"{found[1]}{found[2]}{_TABLES[found[1]]()}", text)


def _table(head: tuple[str, ...], cells: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(line)} |" for line in cells)]
    return "".join(f"{line}\n" for line in lines)


def _verdicts() -> str:
    """A section for each verdict, the worst first."""
    return "\n".join(_verdict_section(verdict) for verdict in sorted(Verdict, key=lambda one: -one.severity))


def _verdict_section(verdict: Verdict) -> str:
    return f"""### `{verdict.value}`

{_wrapped(_sentence(verdict.meaning))}

{_wrapped(f"**Do:** {verdict.remedy}")}
"""


def _rules_table() -> str:
    cells = (
        (
            str(number),
            f"[`{rule.name}`](#{rule.name})",
            f"[`{rule.verdict.value}`](#{rule.verdict.value})",
            WORDS[rule.name].condition or WORDS[rule.name].meaning,
        )
        for number, rule in enumerate(RULES, start=1)
    )
    return _table(("#", "rule", "verdict", "when"), cells)


def _rules() -> str:
    """A section for each rule, in the order in which they are asked."""
    return "\n".join(_rule_section(number, rule) for number, rule in enumerate(RULES, start=1))


def _rule_section(number: int, rule: Rule) -> str:
    words = WORDS[rule.name]
    because = f"{words.reason} {words.background}".rstrip()
    return f"""### `{rule.name}`

{_wrapped(f"Rule {number}, [`{rule.verdict.value}`](#{rule.verdict.value}). {because}")}

{_wrapped(f"**Do:** {words.remedy}")}
{_example(rule) if rule.name == _SHOWN else ""}"""


def _causes_table() -> str:
    cells = ((f'<a id="cause-{c.name}"></a>`{c.name}`', c.story, c.prevention) for c in CAUSES)
    return _table(("cause", "what happened", "what prevents it"), cells)


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


# What the README repeats of the newest brokers' transcript: how a typed line begins, and the lines below it.
_SESSION = (
    ("txn-analysis audit ", ("HANGING", "1. orders", "   blocks", "   why", "   do ")),
    ("txn-analysis abort-plan ", ()),
    ("BROKERS=broker-1:9092 sh plan.sh --ended ", ("",)),
    ("txn-analysis audit ", ("Nothing",)),
    ("txn-analysis verify", ("1 repaired",)),
)


def _session() -> str:
    """A repair as it was typed and printed on real brokers, in short; dots stand for what is left out."""
    typed = iter(printed_on(sections()["4.3.1"]))
    lines = []
    for begins, shown in _SESSION:
        line, printed = next(pair for pair in typed if pair[0].startswith(begins))
        lines += [f"$ {line}", *_in_short(printed.splitlines(), shown)]
    return "\n".join(("```", *lines, "```\n"))


def _in_short(printed: list[str], shown: tuple[str, ...]) -> Iterator[str]:
    """The lines that begin like this, each with the rest of its sentence; dots where lines before one are left out."""
    left_out = 0
    for line in printed:
        if shown and (line.startswith(shown) or (not left_out and line.startswith(" " * 12))):
            yield from ["..."] if left_out else []
            yield line
            left_out = 0
        else:
            left_out += 1


_OBJECTS: dict[str, type[BaseModel]] = {
    "report": AuditReport,
    "explain": Explanation,
    "offset": OffsetAnswer,
    "prune": PruneAnswer,
    "doctor": Machine,
    "who": OwnerAnswer,
    "stats": StatsAnswer,
}
_TABLES: dict[str, Callable[[], str]] = {
    "session": _session,
    "owners": _owners_table,
    "format-plan": lambda: _table(("field", "type", "it says"), plan_fields()),
    **{
        f"format-{name}": partial(lambda model: _table(("object", "its fields", "it says"), objects(model)), model)
        for name, model in _OBJECTS.items()
    },
    "format-rows": lambda: _table(("verb", "columns, in order"), row_columns()),
    "verdicts": _verdicts,
    "rules-in-order": _rules_table,
    "rules": _rules,
    "causes": _causes_table,
    "glossary-warnings": _warnings_table,
}


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 118, break_long_words=False, break_on_hyphens=False)


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:] + "."


def _example(rule: Rule) -> str:
    """A finding of the first line of the proof table that the rule decides."""
    case = next(case for case in CASES if case.rule == rule.name)
    finding = finding_of(case.judged(), "RUN", "FINDING", None)
    shown = finding._replace(cause=None)  # causes have a section of their own
    health = rows.health(partition=0, end_offset=200, last_stable_offset=100)
    report = build_report(rows.run(run_id="RUN", as_of_ms=case.as_of_ms), [], [health], [shown])
    (only,) = report.findings
    lines = [
        Line(f"1. {what(only, report.coverage.connect_groups)}"),
        *lines_of(facts(scene_of(report, only), only), _WIDTH),
    ]
    text = "\n".join(line.text.rstrip() for line in lines)
    return f"""
Example: producer 7 last wrote to orders-0 at 07:00, and the files were copied at 08:00.

```
{text}
```
"""

"""The report as Markdown, for a ticket or a chat of any make: six lines first, the rest behind them under headings.

Tickets and chats act on signs (`@here`, `<!channel>`, links, marks). So a word with a sign that is none of plain text
stands as code, where nothing acts; and nothing in it is HTML. The first six lines name no transactional id: a chat,
which many read, takes these alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from txn_analysis.report import figures, headline
from txn_analysis.report.figures import Reader
from txn_analysis.report.finding_text import report_command
from txn_analysis.report.headline import Kind, Statement
from txn_analysis.report.model import AuditReport
from txn_analysis.report.parts import Form, Part, parts
from txn_analysis.report.terminal import Paragraph
from txn_analysis.text import clip, count, iso_utc

FIRST_LINES = 6
MOST_CHARACTERS = 280
"""Of one of these lines but the last, which is to be copied whole; code marks not counted."""
# A dot between letters makes a link in some chats, and two underscores make others.
_PLAIN = re.compile(
    r"\+|(?!.*(?://|:[a-z]\w*:))[A-Za-z0-9](?:[A-Za-z0-9,:;'\"()%+=/-]|\.(?=\d)|(?<=[^_])_(?=[A-Za-z0-9]))*"
)
_WORDS = re.compile(r"""([ ("']*)([^ ]*?)([)"'.,:;?]*(?= |$))""")
_ACTED_ON = re.compile(r"[<>@*~|&]")
_BACKTICKS = re.compile("`+")


def markdown_report(report: AuditReport, reader: Reader = figures.ANYBODY) -> Iterator[str]:
    """The whole report, line by line; the first `FIRST_LINES` lines are the message for a chat."""
    for line in _lines(report, reader):
        yield f"{line}\n"


def chat_message(report: AuditReport, reader: Reader = figures.ANYBODY) -> Iterator[str]:
    """The first lines alone: the form `chat` of 1.0."""
    return (f"{line}\n" for line in _first(report, reader, list(headline.lead(report, reader))))


def _lines(report: AuditReport, reader: Reader) -> Iterator[str]:
    lead = list(headline.lead(report, reader))
    yield from _first(report, reader, lead)
    first = _in_first(lead)
    for one in lead:
        if one.text not in first and one.kind is not Kind.DOUBT:
            yield from ("", marked(one.text))
    for part in parts(report, reader):
        yield from _part(part)


def _in_first(lead: Sequence[Statement]) -> list[str]:
    """Of the first statements those that a chat gets: the answer, what is new, what would settle it or is blocked."""
    texts = {one.kind: one.text for one in lead}
    since = texts.get(Kind.SINCE, "Since last run: no earlier run is there.")
    blocked = texts.get(Kind.SETTLES) or texts.get(
        Kind.BLOCKED, "Blocked: nothing but what is in progress or too young to be judged."
    )
    return [texts[Kind.ANSWER], since, blocked]


def _first(report: AuditReport, reader: Reader, lead: Sequence[Statement]) -> Iterator[str]:
    answer, *texts = _in_first(lead)
    yield f"**{_inert(answer)}**"
    age = figures.age(report, reader.now_ms)
    copied = iso_utc(report.run.as_of_ms) if report.run.as_of_ms is not None else "no broker's clock tells when"
    if report.warnings:
        texts.append(_warned(report))
    texts.append(f"Cluster {clip(report.run.cluster, 60)}, files copied: {copied}{f', {age}' if age else ''}.")
    yield from (f"- {_inert(text)}" for text in texts)
    if (again := report_command(report, reader)) is not None:
        yield f"- {code(again)}"


def _inert(text: str) -> str:
    """A line in which even a chat that reads no Markdown acts on nothing."""
    return marked(_ACTED_ON.sub("?", clip(text, MOST_CHARACTERS)))


def _warned(report: AuditReport) -> str:
    """How many warnings there are, and what comes first; whom it is about may be an id, and is not said."""
    first = figures.soonest_warnings(report)[0]
    when = "" if first.at_ms is None else f", at {iso_utc(first.at_ms)}"
    return f"{count(len(report.warnings), 'early warning')}; first {first.kind}{when}."


def _part(part: Part) -> Iterator[str]:
    if part.title:
        yield from ("", f"## {marked(part.title)}", "")
    if part.form in {Form.FINDING, Form.FACTS}:
        yield from _labelled(part.paragraphs)
        return
    for number, (_, text, facts, command, _) in enumerate(part.paragraphs, start=1):
        sign = f"{number}. " if part.form is Form.STEPS else "- "
        which, reasons = (f": {facts[0]}", facts[1:]) if part.form is Form.ROWS else ("", facts)
        yield from (f"{sign}{marked(text + which)}",) if part.title else ("", marked(text))
        yield from (f"  - {marked(reason)}" for reason in reasons)
        yield from _fenced(command)


def _labelled(paragraphs: Iterable[Paragraph]) -> Iterator[str]:
    """Paragraphs behind their labels; several of one label below it, as the facts of each."""
    for label, same in groupby(paragraphs, lambda one: one.label):
        first, *others = same
        yield f"- **{label}** {marked(first.text)}".rstrip()
        yield from (f"  - {marked(text)}" for text in (*first.facts, *(one.text for one in others)))
        yield from _fenced(first.command)


def _fenced(command: str | None) -> Iterator[str]:
    """A command to be copied, whole; it stands outside of any list, so that nothing in it ends the fence."""
    if command:
        fence = "`" * max(3, 1 + _longest_run(command))
        yield from (f"{fence}sh", command, fence)


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)


def code(text: str) -> str:
    """A text as code in a line; what stands between more backticks than it has is inert (CommonMark 0.31, 6.1)."""
    marks, room = "`" * (1 + _longest_run(text)), " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{marks}{room}{text}{room}{marks}"


def marked(text: str) -> str:
    """Words of ours with names of others among them: each word that is no plain text becomes code.

    What is to be typed stands between backticks already. `text` is escaped, and begins with a word of ours.
    """
    parts = (
        word for index, part in enumerate(text.split("`")) for word in ([(True, part)] if index % 2 else _words(part))
    )
    # Code beside code would be one run of backticks.
    together = groupby((one for one in parts if one[1]), lambda one: one[0])
    pieces = ((is_code, "".join(piece for _, piece in some)) for is_code, some in together)
    return "".join(code(piece) if is_code else piece for is_code, piece in pieces)


def _words(text: str) -> Iterator[tuple[bool, str]]:
    """Each word with the signs around it, and whether it is to be code."""
    for before, core, behind in _WORDS.findall(text):
        yield from ((False, before), (_PLAIN.fullmatch(core) is None, core), (False, behind))

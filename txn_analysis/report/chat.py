"""The report as a message for a chat: at most six short lines, the answer first, a command last.

Chats are read by many, and some act on what stands in a message (`@here`, `<!channel>`, marks for bold). So no
transactional id is in it, and the signs that a chat acts on are taken out of what is not ours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from txn_analysis.report import figures, headline
from txn_analysis.report.finding_text import report_command
from txn_analysis.report.headline import Kind
from txn_analysis.text import clip, count, iso_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from txn_analysis.report.figures import Reader
    from txn_analysis.report.model import AuditReport

MOST_CHARACTERS = 280
"""Of one line but the last, which is to be copied whole."""
_ACTED_ON = re.compile(r"[<>@*~|&]")


def chat_message(report: AuditReport, reader: Reader = figures.ANYBODY) -> str:
    """The message: the answer, what is new, what is blocked, what comes, of which files, and the command for more."""
    lines = [_bounded(_ACTED_ON.sub("?", line.replace("`", "'"))) for line in _lines(report, reader)]
    return "".join(f"{line}\n" for line in (*lines, report_command(report, reader)))


def _bounded(line: str) -> str:
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1].rstrip()}…"


def _lines(report: AuditReport, reader: Reader) -> Iterator[str]:
    texts = {kind: text for kind, text, _ in headline.lead(report, reader) if kind is not Kind.DOUBT}
    yield texts[Kind.ANSWER]
    yield texts.get(Kind.SINCE, "Since last run: no earlier run is there.")
    yield texts.get(Kind.SETTLES) or texts.get(Kind.BLOCKED, "Blocked: nothing but what is in progress.")
    if report.warnings:
        yield _warned(report)
    age = figures.age(report, reader.now_ms)
    copied = iso_utc(report.run.as_of_ms) if report.run.as_of_ms is not None else "no broker's clock tells when"
    yield f"Cluster {clip(report.run.cluster, 60)}, files copied: {copied}{f', {age}' if age else ''}."


def _warned(report: AuditReport) -> str:
    """How many warnings there are, and what comes first; whom it is about may be an id, and is not said."""
    first = figures.soonest_warnings(report)[0]
    when = "" if first.at_ms is None else f", at {iso_utc(first.at_ms)}"
    return f"{count(len(report.warnings), 'early warning')}; first {first.kind}{when}."

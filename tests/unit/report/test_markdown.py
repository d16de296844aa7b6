"""Markdown: six lines for a chat, bounded and inert; then the rest, whose structure no name can change."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt  # rich brings it

from tests.tools import report_rows as rows
from tests.tools.captures import PARAMETERS
from tests.tools.repository import CASES
from txn_analysis import Settings, audit
from txn_analysis.report.build import build_report
from txn_analysis.report.headline import headline
from txn_analysis.report.markdown import MOST_CHARACTERS, chat_message, markdown_report, marked
from txn_analysis.report.model import AuditReport

HOSTILE = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("`|<>&[]()*_#-+=~!\\:/.@$1ab \n\t\u202e")),
    max_size=60,
)
READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[AuditReport]:
    """The reports of three captures of one cluster, in their order."""
    settings = Settings(warehouse=str(tmp_path_factory.mktemp("warehouse")), **PARAMETERS)
    parts = ("segments", "transaction-state", "producer-snapshots")
    found = []
    for name in ("capture-1", "capture-2", "capture-3"):
        folder = CASES / "kafka-4.2" / name
        paths = [str(folder / part) for part in parts if (folder / part).is_dir()]
        found.append(audit(None, paths, settings.model_copy(update={"capture": name})))
    return found


def test_every_night_has_its_message_and_none_names_an_id(nights: list[AuditReport]) -> None:
    for report in nights:
        message = "".join(chat_message(report))
        assert "".join(markdown_report(report)).startswith(message)
        first, second, *rest = message.splitlines()
        assert first.replace("`", "") == f"**{headline(report).text}**"
        assert second.startswith("- Since last run: ")
        assert 3 <= len(rest) <= 4
        ids = {finding.transactional_id for finding in report.findings if finding.transactional_id is not None}
        assert ids
        assert not [name for name in ids if name in message]
    assert "new" in [*chat_message(nights[-1])][1]


def test_what_would_settle_it_stands_where_it_could_not_be_told() -> None:
    report = build_report(rows.run(verdict_counts={"inconclusive": 1}), [], [], [rows.inconclusive()])
    assert [*chat_message(report)][2].startswith("- Nothing is known to hang, but ")


@pytest.mark.parametrize("topic", ["<!channel>", "@here", "*bold*", "t" * 249, "a\nb", "[x](javascript:1)|`rm`"])
def test_names_are_inert_and_lines_are_bounded(topic: str) -> None:
    warning = {"kind": "about_to_expire", "subject": topic, "example": topic, "text": topic, "count": 1, "at_ms": 0}
    found = [rows.finding(topic=f"{topic}{n}", finding_id=str(n)) for n in range(9)]
    run: Any = rows.run(cluster=topic, warnings=json.dumps([warning]), verdict_counts={"hanging": 9})
    first, *lines = map(shown, chat_message(build_report(run, [], [rows.health(topic=topic)], found)))
    assert len(lines) == 5
    assert all(len(line) <= MOST_CHARACTERS for line in (first, *lines[:-1]))
    assert not set("<>@*|") & set("".join((first, *lines[:-1])))
    assert lines[2] == "1 early warning; first about_to_expire, at 1970-01-01T00:00:00.000Z."


def shown(text: str) -> str:
    """What a reader of Markdown shows of some lines."""
    return "".join(part.content for one in READER.parse(text) for part in one.children or ())


def blocks_of(text: str) -> list[tuple[str, str, str]]:
    """The blocks of a text, and every mark in its lines but code."""
    every = [part for one in READER.parse(text) for part in (one, *(one.children or ()))]
    assert {part.type for part in every} <= KNOWN
    return [(part.type, part.tag, part.info) for part in every if part.type not in {"text", "code_inline"}]


KNOWN = {"text", "code_inline", "inline", "fence", "heading_open", "heading_close", "paragraph_open", "paragraph_close"}
KNOWN |= {
    f"{kind}_{end}" for kind in ("strong", "bullet_list", "ordered_list", "list_item") for end in ("open", "close")
}


def report_with(name: str) -> str:
    """Everything in it that others wrote is one name."""
    warning = {"kind": "about_to_expire", "subject": name, "example": name, "text": "soon", "count": 1, "at_ms": 0}
    run: Any = rows.run(cluster=name, run_id=name, capture=name, warnings=json.dumps([warning]))
    found = [
        rows.live_finding(topic=name, partition=2, transactional_id=name, application=name, evidence=[f"it is {name}"]),
        rows.finding(topic=name, finding_id="f9", txn_start_offset=9),
        rows.inconclusive(transactional_id=name, missing_evidence=[f"the part {name}"]),
    ]
    files = [rows.input_file(path=name, problem=name)]
    return "".join(markdown_report(build_report(run, files, [rows.health(topic=name, remarks=[name])], found)))


PLAIN = blocks_of(report_with("plain"))


@given(HOSTILE)
@example("`")
@example("```\n## forged\n- [x](javascript:1) ![y](z) <b>&lt; | --- |")
@example("a" * 249)
def test_no_name_adds_a_block_or_a_mark(name: str) -> None:
    assert blocks_of(report_with(name)) == PLAIN


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("it lists orders-0, and (billing-worker-17).", "it lists orders-0, and (billing-worker-17)."),
        ("it lists __x__ and a_b", "it lists `__x__` and a_b"),
        ("use `--topic` or *none*", "use `--topic` or `*none*`"),
        ("by `a``b`<i> of it", "by `ab<i>` of it"),
        ("see www.example.org, https://x, :smile: and #12", "see `www.example.org`, `https://x`, `:smile`: and `#12`"),
        ("until 2026-11-21T02:58:54.140Z, 24.4% of 4/4", "until 2026-11-21T02:58:54.140Z, 24.4% of 4/4"),
    ],
)
def test_a_word_that_is_no_plain_text_is_code(text: str, seen: str) -> None:
    assert marked(text) == seen

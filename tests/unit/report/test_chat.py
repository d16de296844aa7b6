"""The message for a chat: bounded, inert, the answer first; of real captures and of what could be in one."""

import json
from typing import Any

import pytest

from tests.tools import report_rows as rows
from tests.tools.captures import PARAMETERS
from tests.tools.repository import CASES
from txn_analysis import Settings, audit
from txn_analysis.report.build import build_report
from txn_analysis.report.chat import MOST_CHARACTERS, chat_message
from txn_analysis.report.headline import headline
from txn_analysis.report.model import AuditReport


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
        message = chat_message(report)
        first, second, *rest = message.splitlines()
        assert first == headline(report).text
        assert second.startswith("Since last run: ")
        assert len(rest) <= 4
        ids = {finding.transactional_id for finding in report.findings if finding.transactional_id is not None}
        assert ids
        assert not [name for name in ids if name in message]
    assert "new" in chat_message(nights[-1]).splitlines()[1]


def test_what_would_settle_it_stands_where_it_could_not_be_told() -> None:
    report = build_report(rows.run(verdict_counts={"inconclusive": 1}), [], [], [rows.inconclusive()])
    assert chat_message(report).splitlines()[2].startswith("Nothing is known to hang, but ")


@pytest.mark.parametrize("topic", ["<!channel>", "@here", "*bold*", "t" * 249, "a\nb", "[x](javascript:1)|`rm`"])
def test_names_are_inert_and_lines_are_bounded(topic: str) -> None:
    warning = {"kind": "about_to_expire", "subject": topic, "example": topic, "text": topic, "count": 1, "at_ms": 0}
    found = [rows.finding(topic=f"{topic}{n}", finding_id=str(n)) for n in range(9)]
    run: Any = rows.run(cluster=topic, warnings=json.dumps([warning]), verdict_counts={"hanging": 9})
    lines = chat_message(build_report(run, [], [rows.health(topic=topic)], found)).splitlines()
    assert len(lines) == 6
    assert all(len(line) <= MOST_CHARACTERS for line in lines[:-1])
    assert not set("<>@*`|") & set("".join(lines[:-1]))
    assert lines[3] == "1 early warning; first about_to_expire, at 1970-01-01T00:00:00.000Z."

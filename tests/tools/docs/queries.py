"""The questions of docs/queries.md, and what is answered to them."""

import re

from tests.tools.captures import PARAMETERS, SEGMENTS
from tests.tools.docs.examples import plain
from tests.tools.repository import CASES, ROOT
from tests.tools.sessions import no_session
from txn_analysis import query
from txn_analysis.pipeline import steps
from txn_analysis.report.formats import Answer, Column
from txn_analysis.runs.ask import cells
from txn_analysis.settings import Settings

PAGE = ROOT / "docs/queries.md"
_ASKED = re.compile(r"## ([^\n]+)\n\n```sql\n(.*?)```\n\n```\n(.*?)```\n", re.DOTALL)


def two_nights(warehouse: str) -> None:
    """A warehouse of two nights, before and after a repair."""
    for night, capture in (("before", "capture-1"), ("after", "capture-3")):
        settings = Settings.model_validate(PARAMETERS | {"warehouse": warehouse, "capture": night})
        parts = [str(CASES / "kafka-4.2" / capture / part) for part in SEGMENTS]
        steps.audit(no_session, parts, settings)


def questions(text: str) -> list[tuple[str, str, str]]:
    """Of each question its heading, its SQL and the answer on the page."""
    return _ASKED.findall(text)


def answered(text: str, warehouse: str) -> str:
    """The page with the answers that `txn-analysis query` prints."""
    return _ASKED.sub(lambda m: f"## {m[1]}\n\n```sql\n{m[2]}```\n\n```\n{_answer(m[2], warehouse)}```\n", text)


def _answer(sql: str, warehouse: str) -> str:
    rows = query(None, warehouse, sql)
    return plain(Answer(tuple(map(Column, rows.column_names)), cells(rows)).text())

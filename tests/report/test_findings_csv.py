from __future__ import annotations

import csv
import io

from tests.report import rows
from txn_analysis.report.build import build_report
from txn_analysis.report.formats import COLUMNS, findings_csv


def test_every_finding_is_one_line_worst_first() -> None:
    found = build_report(rows.run(), [], [], [rows.inconclusive(), rows.finding(late_by_ms=-5), rows.live_finding()])
    header, *lines = csv.reader(io.StringIO(findings_csv(found)))
    table = [dict(zip(header, line, strict=True)) for line in lines]
    assert header == list(COLUMNS)
    assert [line["verdict"] for line in table] == ["hanging", "hanging", "inconclusive"]
    assert table[0]["late_by_ms"] == "-5"
    assert table[0]["transactional_id"] == ""


def test_no_id_is_a_formula_or_a_second_line() -> None:
    found = build_report(rows.run(), [], [], [rows.finding(transactional_id='=cmd|"/C calc"!A0\nsecond')])
    assert len(findings_csv(found).splitlines()) == 2
    assert "\"'=cmd|" in findings_csv(found)

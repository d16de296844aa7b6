from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.formats import findings_csv


def test_no_id_is_a_formula_or_a_second_line() -> None:
    found = build_report(rows.run(), [], [], [rows.finding(transactional_id='=cmd|"/C calc"!A0\nsecond')])
    assert len(findings_csv(found).splitlines()) == 2
    assert "\"'=cmd|" in findings_csv(found)

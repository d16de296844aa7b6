"""Every real capture gives exactly the verdicts that it must, from every form in which it was copied."""

from typing import Any

import pytest

from tests.tools.captures import VARIANTS, AuditOf, Variant, by_place, rows_of
from txn_analysis.report.model import AuditReport


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda v: v.name)
def audited(request: pytest.FixtureRequest, audit_of: AuditOf) -> tuple[Variant, AuditReport]:
    variant: Variant = request.param
    return variant, audit_of(variant)


def test_findings_are_exactly_the_expected_rows(audited: tuple[Variant, AuditReport]) -> None:
    variant, report = audited
    found, expected = by_place(rows_of(report)), by_place(variant.expected)
    assert found.keys() == expected.keys()
    for place, row in expected.items():
        assert {name: found[place][name] for name in row} == _as_printed(row, found[place], variant)


def _as_printed(expected: dict[str, Any], found: dict[str, Any], variant: Variant) -> dict[str, Any]:
    """A shallow dump prints no coordinator epoch: it stays unknown where a marker was seen."""
    if "shallow" in variant.parts and found["coordinator_epoch_basis"] == "unknown":
        return expected | {"coordinator_epoch": None}
    return expected


def test_every_byte_is_accounted_for_and_none_rejected(audited: tuple[Variant, AuditReport]) -> None:
    for item in audited[1].inputs:
        assert (item.parsed_bytes, item.rejected_bytes) == (item.text_bytes, 0)

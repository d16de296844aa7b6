"""Records of plans that were stored or printed before, maybe by another version: as a record of today, or refused.

Nothing that a record lacks is made up: it may be what decides whether its abort is safe to send. What is required, and
what is known, `AbortRecord` alone says; here stand only the fields by which a record is known for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from txn_analysis.errors import WarehouseError
from txn_analysis.plan.abort_plan import AbortRecord
from txn_analysis.text.escape import clip, escape

if TYPE_CHECKING:
    from collections.abc import Mapping

_EVER = frozenset({"run_id", "finding_id", "plan_fingerprint"})  # no version's record is without them
_NAME_WIDTH = 60


def stored_record(row: Mapping[str, Any]) -> AbortRecord:
    """The record of one row of `abort_plan`.

    Raises:
        WarehouseError: another version made it, and this one cannot tell whether it may be sent.
    """
    # Columns that a later version added are NULL in rows of this one.
    said = {name: value for name, value in row.items() if name in AbortRecord.model_fields or value is not None}
    try:
        return AbortRecord.model_validate(said)
    except ValidationError as error:
        why = other_version(error) or "holds a record that cannot be: audit again"
        raise WarehouseError(f"{escape(str(row['run_id']))}: its abort plan {why}") from error


def other_version(error: ValidationError) -> str | None:
    """Which version made a record that is not valid here, and what to do; None where it is no record of any version."""
    of_fields = {str(e["loc"][0]): e for e in error.errors() if len(e["loc"]) == 1}
    unknown = sorted(name for name, e in of_fields.items() if e["type"] == "extra_forbidden")
    lacking = {name for name, e in of_fields.items() if e["type"] == "missing" or e["input"] is None}.difference(
        unknown
    )
    if lacking & _EVER:
        return None
    if (said := of_fields.get("schema_version")) and said["type"] == "literal_error":
        return (
            f"has schema_version {clip(str(said['input']), _NAME_WIDTH)}, which this version does not read: audit again"
        )
    if unknown:
        name = clip(unknown[0], _NAME_WIDTH)
        return f"was made by a newer version, which says {name}: use that one, or audit again"
    if lacking:
        return f"was made by an earlier version, which did not say {', '.join(sorted(lacking))}: audit again"
    return None

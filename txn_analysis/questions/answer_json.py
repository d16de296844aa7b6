"""Answers as JSON, and the schemas of what is printed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from txn_analysis.report.formats import DIALECT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from txn_analysis.report.model import Item


def json_text(answer: Item | Iterable[Item]) -> str:
    """An answer as one object, or several as a list of objects, and a newline; ASCII only."""
    found = (
        answer.model_dump(mode="json") if hasattr(answer, "model_dump") else [i.model_dump(mode="json") for i in answer]
    )
    return json.dumps(found, indent=2, ensure_ascii=True) + "\n"


def schema_text(kind: Any) -> str:
    """The JSON schema of an answer of some kind, such as `OffsetAnswer` or `list[Explanation]`."""
    return json.dumps({"$schema": DIALECT} | TypeAdapter(kind).json_schema(mode="serialization"), indent=2) + "\n"

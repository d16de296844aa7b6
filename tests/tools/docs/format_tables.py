"""The tables of docs/data-formats.md: every field of what programs read, from the classes that write it.

Most of them stand in the site alone.
"""

from typing import Any

from pydantic import BaseModel

from txn_analysis.plan.plan_file import record_schema
from txn_analysis.questions import answers as kafkas
from txn_analysis.questions.answers import HISTORY, VERIFY
from txn_analysis.questions.captured_nights import COLUMNS as CAPTURES
from txn_analysis.questions.ended import ENDED_COLUMNS
from txn_analysis.report.formats import MINUS_ONE, Column

Rows = list[tuple[str, ...]]
_ROWS: dict[str, tuple[Column, ...]] = {
    "find-hanging": kafkas.FIND_HANGING,
    "list": kafkas.LIST,
    "describe": kafkas.DESCRIBE,
    "describe-producers": kafkas.DESCRIBE_PRODUCERS,
    "describe-producers --all": kafkas.DESCRIBE_ALL_PRODUCERS,
    "ended": ENDED_COLUMNS,
    "accept": kafkas.ACCEPT,
    "captures": CAPTURES,
    "verify": VERIFY,
    "verify --history": HISTORY,
}


def plan_fields() -> Rows:
    """Each field of a line of a plan: its name, its type, what it says."""
    schema: Any = record_schema()
    return [
        (f"`{name}`", _type(schema["properties"][name]), _cell(schema["properties"][name]["description"]))
        for name in schema["required"]
    ]


def row_columns() -> Rows:
    """The columns of each verb that prints rows; * where text prints -1 for what is null."""
    return [
        (f"`{verb}`", ", ".join(f"`{c.name}`" + ("*" if c.absent == MINUS_ONE else "") for c in columns))
        for verb, columns in _ROWS.items()
    ]


def objects(model: type[BaseModel]) -> Rows:
    """Each object of what a verb prints as JSON, with its fields and what they say."""
    schema = model.model_json_schema(mode="serialization")
    found = {"": schema} | {name: part for name, part in schema["$defs"].items() if "properties" in part}
    return [
        (
            f"`{name}`" if name else "the whole",
            ", ".join(f"`{field}`{_link(part)}" for field, part in one["properties"].items()),
            _cell(one["description"]),
        )
        for name, one in found.items()
    ]


def _link(part: dict[str, Any]) -> str:
    """The object, or the list of objects, that a field holds."""
    inner = [part, *part.get("anyOf", ())]
    named = [p for p in (*inner, *(p["items"] for p in inner if "items" in p)) if "$ref" in p]
    names = [p["$ref"].rpartition("/")[2] for p in named]
    return f" ({names[0]})" if names else ""


def _type(part: dict[str, Any]) -> str:
    if "const" in part:
        return f"always `{str(part['const']).lower()}`"
    kinds = [p.get("type", "string") for p in part.get("anyOf", [part])]
    return " or ".join(kinds)


def _cell(text: str) -> str:
    """Words of a docstring in a cell: JSON says null where Python says None."""
    return " ".join(text.split()).replace("None", "null").replace("NULL", "null").replace("|", "\\|")

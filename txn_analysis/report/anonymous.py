"""A report for somebody outside: names become pseudonyms, commands go, figures stay.

A pseudonym is made of a name by a keyed hash (HMAC, RFC 2104): who has the key makes the same one of the same name in
each report, and who has not can neither undo it nor try names. Every text that is left over must be made of words of
this program, of figures and of pseudonyms alone; a sentence that has any other word is left out as a whole, since that
word may name something.
"""

from __future__ import annotations

import dataclasses
import hmac
import re
from enum import Enum
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from txn_analysis.kafka.names import INTERNAL_TOPICS
from txn_analysis.plan.standing import AcceptedFinding
from txn_analysis.settings import Settings
from txn_analysis.tables.finding_rows import FindingRows
from txn_analysis.text import escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from txn_analysis.report.model import AuditReport
    from txn_analysis.report.pictures import Pictures

NOTICE = (
    "Anonymized: topics, transactional ids, groups, applications, clusters, captures, runs, files and people have "
    "pseudonyms, and commands are left out. One name has one pseudonym in every report that is made with the same key, "
    "so that its reader can count and compare; without the key nobody can tell a name from a pseudonym, nor test a "
    "guess. Offsets, times, epochs, sizes and producer ids are as they are in the files: by them its sender finds what "
    "is meant, and so does everybody who may read the cluster."
)
LEFT_OUT = "(left out: it may name something)"

_KINDS = {
    "topic": "topic",
    "topics": "topic",
    "transactional_id": "id",
    "pending_groups": "group",
    "waiting_groups": "group",
    "application": "application",
    "cluster": "cluster",
    "capture": "capture",
    "earlier_captures": "capture",
    "forgotten_captures": "capture",
    "path": "file",
    "source": "file",
    "accepted_by": "person",
    # Digests that anybody who guesses the names can make again.
    "run_id": "run",
    "first_run_id": "run",
    "finding_id": "finding",
    "new": "finding",
    "input_id": "input",
}
_PLACES = frozenset({"partitions_missing", "partitions", "doubtful_partitions", "oldest_partition", "worst_partition"})
_OF_ANY_KIND = frozenset({"subject", "example", "whom"})
_DIGITS = 12
_SETTINGS = frozenset(Settings.model_fields)
_HOUSE = ("coordinator", "judge", "kafka", "log", "pipeline", "plan", "reading", "report", "runs", "tables", "text")
_BETWEEN = re.compile(r"""([\s()\[\]{},;"'`=<>|\\]+)""")
_ENDS = ".:!?"
_FIGURE = re.compile(r"[-+]?\d+(\.\d+)?([%+]|/\d+)?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|[-+/*.:!?]*")


class Pseudonyms:
    """What names become under one key, and what is left of a sentence that has some of them."""

    def __init__(self, key: bytes, names: Iterable[tuple[str, str]]) -> None:
        """`names` are all that are known, each behind its kind, such as `topic`."""
        self._key = key
        self._kinds: dict[str, str] = {}
        for kind, name in names:
            for spelled in {name, escape(name)} - {""}:
                self._kinds.setdefault(spelled, kind)
        self._broken = sorted((name for name in self._kinds if _BETWEEN.search(name)), key=len, reverse=True)

    def of(self, kind: str, name: str) -> str:
        """The pseudonym of one name, such as `topic-3f9a0c41d2e8`; internal topics keep theirs."""
        if kind == "topic" and name in INTERNAL_TOPICS:
            return name
        digest = hmac.digest(self._key, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), "sha256")
        return f"{kind}-{digest.hex()[:_DIGITS]}"

    def of_place(self, place: str) -> str:
        """The same of a partition in Kafka's spelling, such as `orders-3`."""
        topic, _, number = place.rpartition("-")
        return f"{self.of('topic', topic)}-{number}" if topic and number.isdecimal() else self.of("name", place)

    def of_any_kind(self, name: str) -> str:
        """The same of what may be a partition, an id or an application."""
        return self._known(name) or self.of("name", name)

    def sentence(self, text: str) -> str:
        """A text whose names are pseudonyms; `LEFT_OUT` where a word of it may be a name that is not known."""
        for name in self._broken:
            text = text.replace(name, self.of(self._kinds[name], name))
        words = [word if index % 2 else self._word(word) for index, word in enumerate(_BETWEEN.split(text))]
        return "".join(word for word in words if word is not None) if None not in words else LEFT_OUT

    def _word(self, word: str) -> str | None:
        core = word.strip(_ENDS)
        for part in (word, core):
            if (known := self._known(part)) is not None:
                return word.replace(part, known)
        is_ours = core in _vocabulary() or core in _SETTINGS or _FIGURE.fullmatch(core) or _is_pseudonym(core)
        return word if is_ours else None

    def _known(self, name: str) -> str | None:
        if name in self._kinds:
            return self.of(self._kinds[name], name)
        topic, _, number = name.rpartition("-")
        is_place = number.isdecimal() and (self._kinds.get(topic) == "topic" or topic in INTERNAL_TOPICS)
        return self.of_place(name) if is_place else None


_PSEUDONYM = re.compile(rf"(?:{'|'.join(sorted({*_KINDS.values(), 'name'}))})-[0-9a-f]{{{_DIGITS}}}(?:-\d+)?")


def _is_pseudonym(word: str) -> bool:
    return _PSEUDONYM.fullmatch(word) is not None


@cache
def _vocabulary() -> frozenset[str]:
    """Every word in the sources of those rooms whose sentences a report has."""
    package = resources.files("txn_analysis")
    texts = (file.read_text(encoding="utf-8") for room in _HOUSE for file in _sources(package.joinpath(room)))
    return frozenset(word.strip(_ENDS) for text in texts for word in _BETWEEN.split(text)[::2])


def _sources(folder: Any) -> Iterator[Any]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry


def anonymized(
    report: AuditReport, pictures: Pictures | None, key: bytes, more_names: Iterable[tuple[str, str]] = ()
) -> tuple[AuditReport, Pictures | None]:
    """The report and its pictures without names; its rows are in the order of the pseudonyms.

    Args:
        report: what was found.
        pictures: its series over time.
        key: of the keyed hash.
        more_names: names that its sentences may have, beside those of its own fields, each behind its kind.
    """
    names = [*_names_in(report), *more_names]
    pseudonyms = Pseudonyms(key, names)
    found: AuditReport = _without_names(report, pseudonyms)
    ordered = {
        "findings": found.findings.worst_first(),
        "partitions": tuple(sorted(found.partitions, key=lambda item: (item.topic, item.partition))),
        "inputs": tuple(sorted(found.inputs, key=lambda item: item.path)),
    }
    told = found.model_copy(update=ordered | {"anonymized": NOTICE})
    return told, None if pictures is None else _without_names(pictures, pseudonyms)


def _names_in(value: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """The names in all fields that hold some, each behind its kind; of a path its folders and its last part as well."""
    if isinstance(value, str) and not isinstance(value, Enum):
        if field == "path":
            parts = value.split("/")
            yield from (("file", "/".join(parts[:end])) for end in range(2, len(parts)))
            yield "file", parts[-1]
        if field in _PLACES:
            yield "topic", value.rpartition("-")[0]
        elif field in _KINDS:
            yield _KINDS[field], value
        return
    for name, part in _parts(value, field):
        yield from _names_in(part, name)


def _parts(value: Any, field: str) -> Iterator[tuple[str, Any]]:
    """What a value holds, each with the name of its field."""
    if isinstance(value, dict):
        yield from ((str(name), part) for name, part in value.items())
    elif isinstance(value, BaseModel):
        yield from ((name, getattr(value, name)) for name in type(value).model_fields)
    elif dataclasses.is_dataclass(value):
        yield from ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
    elif hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, list | tuple | FindingRows):
        yield from ((field, part) for part in value)


def _without_names(value: Any, pseudonyms: Pseudonyms, field: str = "") -> Any:
    """The same value, where every text went through the pseudonyms; an unknown field holds a sentence."""
    made: Any
    if isinstance(value, Enum):
        made = value
    elif isinstance(value, str):
        made = _text(value, pseudonyms, field)
    elif isinstance(value, dict):
        keys = (pseudonyms.sentence(str(name)) for name in value)
        made = dict(
            zip(keys, (_without_names(part, pseudonyms, str(name)) for name, part in value.items()), strict=True)
        )
    elif isinstance(value, AcceptedFinding):
        parts = {name: _without_names(part, pseudonyms, name) for name, part in _parts(value, field)}
        made = AcceptedFinding(**parts | {"reason": LEFT_OUT})
    elif isinstance(value, BaseModel):
        # Not a copy: that would take over what was worked out of the names.
        parts = {name: _without_names(part, pseudonyms, name) for name, part in _parts(value, field)}
        made = type(value).model_construct(**parts)
    elif hasattr(value, "_fields") or dataclasses.is_dataclass(value):
        made = type(value)(**{name: _without_names(part, pseudonyms, name) for name, part in _parts(value, field)})
    elif isinstance(value, FindingRows):
        made = FindingRows.of(_without_names(part, pseudonyms, field) for part in value)
    elif isinstance(value, list | tuple):
        made = type(value)(_without_names(part, pseudonyms, field) for part in value)
    else:
        made = value
    return made


def _text(text: str, pseudonyms: Pseudonyms, field: str) -> str:
    if field in _KINDS:
        return pseudonyms.of(_KINDS[field], text)
    if field in _PLACES:
        return pseudonyms.of_place(text)
    return pseudonyms.of_any_kind(text) if field in _OF_ANY_KIND else pseudonyms.sentence(text)

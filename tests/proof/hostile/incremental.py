"""Feeding a cluster's captures one at a time equals feeding them at once; what began earlier is still known."""

import random
from typing import Any

from tests.proof.hostile.subjects import Simulated, simulated
from tests.tools.harness import Answer, audit_files
from tests.tools.inputs import InputReader
from txn_analysis.settings import Settings

Row = dict[str, Any]

# Which files vouch for each other, and which were linked, depends on which files there are; no verdict rests on it.
_OF_THE_FILES = {"witnesses", "linked_pieces"}


def _without_cause(row: Row) -> Row:
    """How sure a cause is depends on the gaps of the history, which an older copy fills."""
    return {name: value for name, value in row.items() if name != "cause"}


def differences(reader: InputReader, seed: str) -> list[str]:
    """How the newest capture of a simulated cluster is judged apart from the older one behind it, and with it in one.

    The newest capture holds every partition, so that nothing in it rests on the older one alone. Where today's state
    was compacted, its history has gaps that an older copy in the same capture fills: it may be judged more carefully.
    """
    subject = _with_two_captures(seed)
    settings = Settings.model_validate(subject.settings)
    apart = audit_files(reader, subject.captures, settings, judged="2-new")
    together = {f"{name}/{path}": data for name, files in subject.captures.items() for path, data in files.items()}
    at_once = audit_files(reader, {"all": together}, settings)
    if subject.is_compacted:
        found = [_without_cause(row) for row in at_once.hanging]
        return [f"only apart: {row}" for row in map(_without_cause, apart.hanging) if row not in found]
    findings = rows_differ(apart.findings, at_once.findings)
    health = rows_differ(proven(apart), proven(at_once))
    return [*(f"findings: {words}" for words in findings), *(f"health: {words}" for words in health)]


def _with_two_captures(seed: str) -> Simulated:
    """The first of the cluster's neighbours that was copied twice, with its state dumped; nothing was lost between."""
    source = random.Random(seed)
    while True:
        subject = simulated(f"{seed}/{source.random()}")
        is_dumped = any("__transaction_state" in path for path in subject.captures["2-new"])
        if len(subject.captures) == 2 and is_dumped and not subject.moments[-1].lost:
            return subject


def proven(answer: Answer) -> list[Row]:
    """Partition health without the files' own witnesses."""
    return [{name: value for name, value in row.items() if name not in _OF_THE_FILES} for row in answer.health]


def rows_differ(ours: list[Row], theirs: list[Row]) -> list[str]:
    """Each value that differs, in words; one line where rows are missing."""
    if len(ours) != len(theirs):
        return [f"{len(ours)} rows, then {len(theirs)}"]
    return [
        f"{a['topic']}-{a['partition']} {name}: {a[name]!r}, then {b[name]!r}"
        for a, b in zip(ours, theirs, strict=True)
        for name in a
        if a[name] != b[name]
    ]

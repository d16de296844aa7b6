"""What the operator gave their word for, as far as nothing in the capture disproves it.

An assurance that is disproved counts nowhere in the capture, and the report names it with what disproves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.judge.rules.asked_first import COMMIT_MARKER_MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from txn_analysis.coordinator.fit import Fit
    from txn_analysis.judge.judgement import Judgement
    from txn_analysis.kafka.transactions import PartitionView
    from txn_analysis.settings import Settings

Disproved = dict[str, str]
"""By the name of its setting, what disproves an assurance, in words."""


def disproved_by_state(fit: Fit) -> Disproved:
    """The word that the state was copied last, where a commit in the logs is later than it, and not in it."""
    later = fit.sums.later
    if later is None:
        return {}
    return {"state_copied_last": f"{later}, is later than what __transaction_state holds, and is not in it"}


def disproved_by_loss(judged: Iterable[Judgement], partitions: Iterable[PartitionView]) -> Disproved:
    """The word that no record was lost, where a marker was."""
    lost = (f"{j.facts.where} lost a COMMIT marker" for j in judged if j.rule is COMMIT_MARKER_MISSING)
    cut = (
        f"a copy of {p.topic_partition} was truncated below an end marker at offset {p.truncated_marker_offset}"
        for p in partitions
        if p.truncated_marker_offset is not None
    )
    told = next(iter((*sorted(lost), *sorted(cut))), None)
    return {} if told is None else {"no_records_lost": told}


def given(settings: Settings, disproved: Disproved) -> Disproved:
    """Of what is disproved, that for which the operator gave their word."""
    return {name: told for name, told in disproved.items() if getattr(settings, name)}


def without(settings: Settings, disproved: Mapping[str, str]) -> Settings:
    """The settings without the assurances that are disproved."""
    return settings.model_copy(update=dict.fromkeys(disproved, False))

"""Which logs lie in folders of the cluster that the state's files come from, by the `cluster.id` of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.kafka.names import CONSOLE_JSON, CONSOLE_TEXT, LOG, STATE
from txn_analysis.kafka.transactions import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection

    from txn_analysis.tables.inputs import InputSection, Manifest

_OF_STATE = frozenset({STATE, CONSOLE_TEXT, CONSOLE_JSON})


def of_one_cluster(sections: Collection[InputSection], manifests: Collection[Manifest]) -> frozenset[TopicPartition]:
    """The partitions whose files in the judged capture are all of one cluster, which is that of all of the state's.

    Args:
        sections: all of the evidence; `cluster_id` is that of the folder of each.
        manifests: those of the judged capture; one that was cut short proves nothing.
    """
    named = {
        file.input_id: manifest.cluster_id
        for manifest in manifests
        if manifest.is_complete
        for file in manifest.files
        if file.input_id is not None
    }
    clusters = [(s, s.cluster_id or named.get(s.input_id)) for s in sections if not s.capture_rank]
    of_state = {cluster for section, cluster in clusters if section.kind in _OF_STATE}
    if len(of_state) != 1 or None in of_state:
        return frozenset()
    logs = [(TopicPartition(s.topic, s.partition), cluster in of_state) for s, cluster in clusters if s.kind == LOG]
    return frozenset(where for where, _ in logs) - {where for where, is_its_own in logs if not is_its_own}

"""Of which cluster files are, by the `meta.properties` that lies beside them, or in their log directory."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

from txn_analysis.kafka.names import CLUSTER_ID
from txn_analysis.tables.inputs import log_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txn_analysis.reading.inputs.planned_input import PlannedInput
    from txn_analysis.reading.text.section import Section


def cluster_ids(planned: Sequence[PlannedInput]) -> dict[str, str]:
    """By input the `cluster.id` of the folders in which it was found; without those of none, or of several.

    Equal files are one input, also where one lies beside the logs and one beside the state.
    """
    stated = defaultdict[str, set[str]](set)
    for each in planned:
        for section in each.sections:
            if section.kind == CLUSTER_ID and section.stated is not None:
                for folder in _folders(each, section):
                    stated[folder].add(section.stated)
    clusters = {}
    for each in planned:
        of_input = {cluster for s in each.sections[:1] for folder in _folders(each, s) for cluster in stated[folder]}
        if len(of_input) == 1:
            clusters[each.input_id] = of_input.pop()
    return clusters


def _folders(planned: PlannedInput, section: Section) -> Iterator[str]:
    """The log directories of a broker's own file; of a text the folder that it lies in."""
    for path in (planned.path, *planned.same_paths):
        beside = os.path.normpath(os.path.dirname(path) or os.curdir)  # noqa: PTH120 links stay as they are
        yield log_dir(path, section.dump_path, section.grammar) or beside

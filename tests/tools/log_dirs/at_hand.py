"""A copied log directory, whole: each file that is evidence, read for the audit in memory."""

from pathlib import Path, PurePath
from typing import Any

from tests.tools.harness import Item, history_of
from tests.tools.inputs import ReadInput
from tests.tools.log_dirs.reading import plans, rows_of, scans_of, sorted_files
from tests.tools.stories.answer import Answer, answer_of
from tests.tools.stories.history import History
from txn_analysis.kafka.names import LOG_KINDS, SNAPSHOT, STATE
from txn_analysis.reading.inputs.broker_files import PassedOver
from txn_analysis.reading.inputs.planned_input import PlannedInput, cluster_ids
from txn_analysis.reading.text.section import Section
from txn_analysis.settings import Settings
from txn_analysis.tables import PRODUCER_SNAPSHOTS, TRANSACTION_STATES

Kept = dict[tuple[str, str], ReadInput]
"""What was read, by its place in a log directory and its content: most files of a copy are those of the one before."""

_TABLES = {SNAPSHOT: PRODUCER_SNAPSHOTS, STATE: TRANSACTION_STATES}


def answer_for(folder: Path, settings: Settings) -> Answer:
    """What an audit of a folder says, without what other captures would add; see `inputs_of`."""
    return answer_of(history_for(inputs_of(folder), settings))


def history_for(inputs: list[ReadInput], settings: Settings) -> History:
    """What was read of the log directories of one cluster, which `meta.properties` names where it was copied."""
    stated = {*cluster_ids([each.planned for each in inputs]).values()}
    cluster_id = stated.pop() if len(stated) == 1 else None
    return history_of([Item(each, 0) for each in inputs], settings, cluster_id)


def inputs_of(folder: Path, kept: Kept | None = None) -> list[ReadInput]:
    """Every file that is evidence; each other one is known to be none.

    Raises:
        AssertionError: a file that Kafka wrote is not understood.
    """
    unknown = {file.path: what for file, what in sorted_files(folder).items() if not _is_known(what)}
    assert not unknown, unknown
    found = [_read(plan, {} if kept is None else kept) for plan in plans(folder)]
    refused = {item.planned.path: item.planned.problem for item in found if item.planned.problem}
    assert not refused, refused
    return found


def _is_known(what: object) -> bool:
    return isinstance(what, Section | PassedOver)


def _read(plan: PlannedInput, kept: Kept) -> ReadInput:
    key = "/".join(PurePath(plan.path).parts[-2:]), plan.input_id
    if key not in kept:
        kind = plan.sections[0].kind if plan.sections else None
        batches = scans_of(plan) if kind in LOG_KINDS else []
        kept[key] = ReadInput(plan, batches, _rows(plan, kind) if kind in _TABLES else [])
    return kept[key]


def _rows(plan: PlannedInput, kind: str) -> list[dict[str, Any]]:
    absent = dict.fromkeys(_TABLES[kind].names)
    return [absent | row | {"input_id": plan.input_id, "section_index": 0} for row in rows_of(plan)]

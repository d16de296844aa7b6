"""The broker's word against the audit's, at one checkpoint."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.proof.kafka.log.audited import doubts_of, producer_of
from tests.proof.kafka.requests.checkpoint import Checkpoint, Partition, Said
from tests.systems.e2e.broker import STATE_PARTITIONS, TRANSACTION_MAX_TIMEOUT_MS
from tests.systems.e2e.requests import ActiveProducer, Transaction
from tests.tools.log_dirs.at_hand import Kept, history_for, inputs_of
from tests.tools.stories.answer import Answer, answer_of
from tests.tools.stories.history import History
from txn_analysis.coordinator.fit import UNCONFIRMED
from txn_analysis.kafka.names import LOG
from txn_analysis.kafka.problems import HOLES
from txn_analysis.kafka.transactions import StateRecord
from txn_analysis.settings import Settings
from txn_analysis.tables import Finding
from txn_analysis.verdict import Verdict

Row = dict[str, Any]

NONE = -1
_DECIDED = {"PrepareCommit", "PrepareAbort"}
_PENDING = {"marker_pending_commit", "marker_pending_abort", "marker_overdue"}
# Markers of nobody's contradict the coordinator; data of an epoch that it never gave is newer than what it knows; and
# a client's time that lies in the future says nothing. The audit does not judge then.
_NO_ANSWER = {"state_does_not_fit", "state_older_than_log", "clock_not_credible"}
# What is true of these brokers: the state is copied last, no record was ever lost, and there is one clock.
_SETTINGS = {
    "transaction_state_partitions": STATE_PARTITIONS,
    "transaction_max_timeout_ms": TRANSACTION_MAX_TIMEOUT_MS,
    "max_clock_skew_ms": 0,
    "state_copied_last": True,
    "no_records_lost": True,
}


@dataclass
class Comparison:
    """What was compared at one checkpoint, and in words each thing that was not alike.

    Attributes:
        producers: how many; `opened` of them had something open, and of `cleaned` ones the cleaner took what was last.
        ids: transactional ids.
        differences: in words.
    """

    producers: int = 0
    cleaned: int = 0
    opened: int = 0
    ids: int = 0
    differences: list[str] = field(default_factory=list)


def compare(checkpoint: Checkpoint, kept: Kept) -> Comparison:
    """Whether the audit says of the copied files what the broker said, and takes them for whole."""
    settings = Settings.model_validate(_SETTINGS | {"as_of_ms": checkpoint.as_of_ms})
    history = history_for(inputs_of(checkpoint.folder, kept), settings)
    answer = answer_of(history)
    found = Comparison()
    health = {(row["topic"], row["partition"]): row for row in answer.health}
    for place, partition in checkpoint.said.partitions.items():
        words = [*_of_log(partition, health[place], history), *_producers(partition, health[place], found)]
        words += [f"the audit doubts: {why}" for why in doubts_of(health[place], answer)]
        found.differences += [f"{place}: {each}" for each in words]
    found.differences += _ids(checkpoint.said, history, found)
    found.differences += _verdicts(checkpoint.said, answer)
    return found


def _of_log(partition: Partition, row: Row, history: History) -> Iterator[str]:
    place = row["topic"], row["partition"]
    own = (s for s in history.sections if (s["topic"], s["partition"]) == place and s["kind"] == LOG)
    first_file = min(section["file_base_offset"] for section in own)
    for name, ours in (
        ("log_start_offset", max(row["log_start_offset"] or 0, first_file)),
        ("log_end_offset", row["end_offset"]),
        ("last_stable_offset", row["last_stable_offset"]),
    ):
        # Where the log start is inside a batch that is open, Kafka 4.2 and newer answer with the start of that batch.
        theirs = max(getattr(partition, name), partition.log_start_offset)
        if ours != theirs:
            yield f"{name} is {theirs} at the broker and {ours} in the audit"


def _producers(partition: Partition, row: Row, found: Comparison) -> Iterator[str]:
    is_compacted = any(problem["kind"] in HOLES for problem in row["problems"])
    known = {entry["producer_id"]: ActiveProducer(**asdict(producer_of(entry))) for entry in row["producers"]}
    for producer_id in sorted(known.keys() | partition.producers.keys()):
        ours, theirs = known.get(producer_id), partition.producers.get(producer_id)
        found.producers += 1
        found.opened += theirs is not None and theirs.txn_start_offset != NONE
        if is_compacted and _is_cleaned(theirs, ours):
            found.cleaned += 1
        elif ours != theirs:
            yield f"{theirs} at the broker, {ours} in the audit"


def _is_cleaned(theirs: ActiveProducer | None, ours: ActiveProducer | None) -> bool:
    """The broker still knows in memory what the cleaner took from its files, which has ended.

    It leaves an end marker as a batch without records, which Kafka itself passes over when it loads the log
    (`ProducerAppendInfo.append`), and later takes the batch as well.
    """
    if theirs is None or ours == theirs or theirs.txn_start_offset != NONE:
        return False
    if ours is None:
        return True
    return ours.txn_start_offset == NONE and ours.last_timestamp_ms <= theirs.last_timestamp_ms


def _ids(said: Said, history: History, found: Comparison) -> Iterator[str]:
    """What `DescribeTransactions` and the newest record of an id say otherwise."""
    newest = {own[-1].transactional_id: own[-1] for own in history.of_ids}
    for name, theirs in (said.transactions or {}).items():
        found.ids += 1
        ours = _transaction(newest[name]) if name in newest else None
        if ours is None or _recorded(theirs, ours) != ours:
            yield f"{name}: {theirs} at the broker, {ours} in the audit"


def _transaction(row: StateRecord) -> Transaction:
    """The newest record of an id."""
    said: Any = row  # of a live id nothing is None but the start
    return Transaction(
        said.transactional_id,
        said.state,
        said.timeout_ms,
        NONE if row.start_ms is None else row.start_ms,
        said.producer_id,
        said.producer_epoch,
        frozenset(row.topic_partitions),
    )


def _recorded(theirs: Transaction, ours: Transaction) -> Transaction:
    """What a broker holds in memory, as it has written it down.

    Of a decision it forgets each partition whose marker has arrived. And of an id that is Empty again it still knows
    when the transaction before began (`TransactionMetadata.completeTransitionTo`).
    """
    if theirs.state in _DECIDED and theirs.places <= ours.places:
        return replace(theirs, places=ours.places)
    return replace(theirs, start_ms=NONE) if theirs.state == "Empty" else theirs


def _verdicts(said: Said, answer: Answer) -> Iterator[str]:
    """What is late hangs where `find-hanging` would say so, and nowhere else."""
    for finding in answer.findings:
        is_hanging = finding.verdict is Verdict.HANGING
        if finding.verdict is Verdict.IN_PROGRESS or _is_unanswered(finding) or said.transactions is None:
            continue
        if is_hanging == _is_listed(said.transactions.values(), finding):
            listed = "does not list" if not is_hanging else "lists"
            where = f"{finding.topic}-{finding.partition}, producer id {finding.producer_id}"
            yield f"{where}: {finding.verdict.value} by {finding.rule}, and the coordinator {listed} it"


def _is_unanswered(finding: Finding) -> bool:
    """Markers of nobody's leave nothing hanging: the state has no decision for them, and none may contradict it."""
    told = finding.missing_evidence
    is_by_markers = bool(told) and all(UNCONFIRMED in words or "has no decision in it" in words for words in told)
    return finding.rule in _NO_ANSWER or (finding.rule == "state_incomplete" and is_by_markers)


def _is_listed(transactions: Iterable[Transaction], finding: Finding) -> bool:
    """Of a decision the broker forgets in memory what it still lists in its newest record; see `_recorded`."""
    place = finding.topic, finding.partition
    return any(
        found.producer_id == finding.producer_id
        and (place in found.places or (found.state in _DECIDED and finding.rule in _PENDING))
        for found in transactions
    )

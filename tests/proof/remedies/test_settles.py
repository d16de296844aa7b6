"""Every lack is settled by what its remedy says to do; a new kind of lack without its lesson here fails.

A lesson takes something away, which is seen to be reported, and does what the words say: with files of the same
capture, or with those of a later one. A word comes last in every remedy, behind what would make it superfluous.
"""

import re
import shutil
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.proof.remedies.lab import Lab, lacks
from tests.tools.forms.dump_writer import Tool, log_section
from tests.tools.forms.model import Batch, Segment
from tests.tools.manifests import manifest_of
from tests.tools.repository import CASES
from tests.tools.sessions import opened
from tests.unit.log.test_header_keys import DEEP, SHALLOW, data, marker
from txn_analysis.judge import rules, words
from txn_analysis.judge.case import Case
from txn_analysis.judge.lacks import LACK_OF_PROBLEM, Lack
from txn_analysis.judge.outcome import Outcome
from txn_analysis.judge.rules import Rule
from txn_analysis.kafka.names import java_hash, state_partition
from txn_analysis.kafka.problems import ProblemKind
from txn_analysis.logic import Truth
from txn_analysis.questions.loaded_report import load_report
from txn_analysis.report.model import AuditReport, Remedy
from txn_analysis.report.text_report import text_report
from txn_analysis.settings import Settings

WORDS = {"state_copied_last": True, "no_records_lost": True}
FOUR_TWO, DUMPS = "kafka-4.2/capture-1", ("segments", "transaction-state")
WRONG_ORDER, EMPTIED = "kafka-4.3-wrong-order", "kafka-4.3-emptied-file/capture-1"
FLINK = "kafka-4.3-flink/capture-1"
META = (CASES / FOUR_TWO / "log-dirs/n1/meta.properties").read_text()
OPENS = replace(data(2, 3, headers="trace"), is_transactional=False)


@dataclass(frozen=True)
class Lesson:
    """What is taken away, and what the words say to do; `words` is a part of them."""

    take: Callable[[Lab], Any]
    do: Callable[[Lab], Any]
    words: str
    settings: dict[str, Any] = field(default_factory=lambda: WORDS)
    then: dict[str, Any] = field(default_factory=dict)
    is_same_warehouse: bool = False


def whole(lab: Lab) -> Lab:
    return lab.copy(FOUR_TWO, *DUMPS)


def without(*patterns: str) -> Callable[[Lab], None]:
    """The capture without some of its files."""

    def take(lab: Lab) -> None:
        whole(lab)
        lab.remove(*patterns)

    return take


def changed(name: str, change: Callable[[str], str]) -> Callable[[Lab], None]:
    """The capture with one file in other words."""

    def take(lab: Lab) -> None:
        whole(lab)
        lab.write(name, change((lab.root / "files" / name).read_text()))

    return take


def cut_behind_the_orphan(lab: Lab) -> None:
    """Of the logs one alone, to the end of its open data: no end marker is as late."""
    name = "segments/n1.orders-2.txt"
    lab.copy(FOUR_TWO, name, "transaction-state")
    text = (CASES / FOUR_TWO / name).read_text()
    orphan = text.index("producerId: 987654321")
    lab.write(name, text[: text.index("baseOffset", orphan)])


def with_meta_beside_both(lab: Lab) -> None:
    for folder in DUMPS:
        lab.write(f"{folder}/meta.properties", META)


def without_decoder(lab: Lab, partition: str = "") -> None:
    """The capture, its state, or a partition of it, dumped without the decoder."""
    whole(lab)
    for dump in (lab.root / "files/transaction-state").glob(f"*{partition}.txt"):
        dump.write_text(re.sub(r"(?m) key: \{.*$", "", dump.read_text()))


def without_batches(text: str, first: int, end: int) -> str:
    """A dump without some of its batches, with their records."""
    number, kept = -1, []
    for line in text.splitlines(keepends=True):
        number += line.startswith("baseOffset: ")
        if not first <= number < end:
            kept.append(line)
    return "".join(kept)


def dumped(lab: Lab, name: str, tool: Tool, *batches: Batch, state: str | None = None) -> None:
    """One segment of orders-0 as a tool prints it, beside the real state, or another."""
    if state is None:
        lab.copy(FOUR_TWO, "transaction-state")
    else:
        lab.write("state/0.txt", state)
    lab.write(f"{name}.txt", log_section("orders-0", Segment(0, batches), tool))


def a_night_without_orders_0(lab: Lab) -> None:
    """A capture, and a later one that lacks the log of a partition."""
    whole(lab)
    lab.audit(**WORDS)
    lab.remove("segments", "transaction-state")
    lab.copy("kafka-4.2/capture-2", "segments", "producer-snapshots", "transaction-state")
    lab.remove("segments/*orders-0.txt", "producer-snapshots/*orders-0.txt")


def by_the_kit(lab: Lab) -> None:
    """A state that the cleaner passed, whose manifest says that its folders are whole."""
    lab.copy(EMPTIED, "log-dirs")
    folder = lab.root / "files/log-dirs/node1"
    manifest_of(folder, changed=lambda entry: entry | {"is_folder_whole": entry["topic"] is not None})


def by_the_kit_with_a_hole(lab: Lab) -> None:
    """A state of which the cleaner took what lay between two files; the manifest says that its folders are whole."""
    lab.copy(FLINK, "log-dirs")
    folder = lab.root / "files/log-dirs/node1"
    for segment in folder.glob("__transaction_state-*/*.log"):
        kept = cleaned(segment)
        segment.write_bytes(b"")
        base_offset = int.from_bytes(kept[0][:8], "big")
        (segment.parent / f"{base_offset:020d}.log").write_bytes(b"".join(kept))
    manifest_of(folder, changed=lambda entry: entry | {"is_folder_whole": entry["topic"] is not None})


def with_another_copy_of_the_state(lab: Lab) -> None:
    """One whose cleaner has not passed."""
    for folder in (CASES / FLINK / "log-dirs/node1").glob("__transaction_state-*"):
        shutil.copytree(folder, lab.root / "files/replica" / folder.name)


def cleaned(segment: Path) -> list[bytes]:
    """What the cleaner leaves of a segment of the state: the last batch of each id, which holds one record."""
    batches = [*batches_of(segment.read_bytes())]
    last = {id_of(batch): place for place, batch in enumerate(batches)}
    return [batches[place] for place in sorted(last.values())]


def id_of(batch: bytes) -> bytes:
    """Behind 61 bytes of header: a size, attributes, two deltas and a size; the key is a version and a string."""
    at = batch.index(bytes(3), 61) + 3
    at += 1 + (batch[at] >= 128)
    return batch[at + 4 : at + 4 + int.from_bytes(batch[at + 2 : at + 4], "big")]


def batches_of(segment: bytes) -> Iterator[bytes]:
    """The record batches of a segment: a base offset of 8 bytes, a length of 4, and so many bytes."""
    at = 0
    while at < len(segment):
        end = at + 12 + int.from_bytes(segment[at + 8 : at + 12], "big")
        yield segment[at:end]
        at = end


def behind_an_earlier_night(take: Callable[[Lab], Any]) -> Callable[[Lab], None]:
    """The same files again, in a warehouse that has an earlier copy of the state."""

    def do(lab: Lab) -> None:
        lab.remove("*")
        lab.copy(FOUR_TWO, "log-dirs").audit(capture="earlier", state_copied_last=True)
        lab.remove("*")
        take(lab)

    return do


def compacted(lab: Lab) -> None:
    """The capture, older records of its state taken."""
    lab.copy(FOUR_TWO, "log-dirs")
    for segment in (lab.root / "files/log-dirs").glob("*/__transaction_state-*/*.log"):
        segment.write_bytes(b"".join(cleaned(segment)))


def in_a_state_of_tomorrow(text: str) -> str:
    """The newest record of an id that is in a transaction: PrepareEpochFence, which no coordinator writes yet."""
    before, name, newest = text.rpartition("settlement")
    return before + name + newest.replace('"transactionStatus":1,', '"transactionStatus":7,', 1)


def one_id() -> str:
    """The real state's first record, as that of an id which several numbers of partitions put where it lies."""
    text = (CASES / FOUR_TWO / STATE_1).read_text()
    first = "".join(text.splitlines(keepends=True)[:4])
    names = (f"order-service-{letter}" for letter in string.ascii_letters)
    return first.replace("order-service-2", next(n for n in names if state_partition(java_hash(n), 50) == 1))


COPIED_MS = 1_795_230_100_000
EMPTY_STATE = "Dumping __transaction_state-0/00000000000000000000.log\nLog starting offset: 0\n"
UNTIMED = replace(data(0, 1), max_timestamp_ms=-1)
ANOTHERS_END = replace(marker(1, 9), max_timestamp_ms=COPIED_MS - 60_000)
LATER = replace(data(1, 3), is_transactional=False, max_timestamp_ms=COPIED_MS - 60_000)
LAST_BATCH = 105
STATE_0 = "transaction-state/n1.__transaction_state-0.txt"
STATE_1 = "transaction-state/n2.__transaction_state-1.txt"
ORDERS_0 = "segments/n1.orders-0.txt"
NOTHING = replace(data(3, 4), is_transactional=False)

LESSONS: dict[Lack, Lesson] = {
    Lack.NO_LOGS: Lesson(without("segments"), whole, "the logs of the partitions"),
    Lack.NO_STATE: Lesson(without("transaction-state"), whole, "all its partitions"),
    Lack.STATE_NOT_UNDERSTOOD: Lesson(
        without_decoder, lambda lab: lab.copy(FOUR_TWO, "transaction-state"), "again with `--transaction-log-decoder`"
    ),
    Lack.STATE_PARTITIONS: Lesson(without("transaction-state/*-3.txt"), whole, "copy all partitions"),
    Lack.STATE_OLDER_AND_PARTIAL: Lesson(
        without("transaction-state/*-3.txt"), whole, "copy all partitions of `__transaction_state` after the logs"
    ),
    Lack.STATE_COUNT_WRONG: Lesson(
        whole,
        lambda _: None,
        "`--transaction-state-partitions 4`, the only count that fits",
        settings=WORDS | {"transaction_state_partitions": 3},
        then={"transaction_state_partitions": 4},
    ),
    Lack.STATE_OF_ANOTHER: Lesson(
        lambda lab: lab.copy(FOUR_TWO, "segments").copy("kafka-4.2-edge/capture-1", "transaction-state"),
        lambda lab: whole(lab.remove("transaction-state")),
        "of the cluster that the logs are from",
    ),
    Lack.STATE_NOT_SHOWN: Lesson(
        cut_behind_the_orphan,
        with_meta_beside_both,
        "meta.properties",
    ),
    Lack.TWO_CLUSTERS: Lesson(
        lambda lab: whole(lab).copy("kafka-2.8/capture-1", "segments"),
        lambda lab: whole(lab.remove("segments")),
        "audit these folders apart",
    ),
    Lack.STATE_OLDER: Lesson(
        lambda lab: lab.copy(f"{WRONG_ORDER}/capture-1", "shallow", "state"),
        lambda lab: lab.remove("state").copy(f"{WRONG_ORDER}/capture-2", "state"),
        "copy the files again: the logs first and `__transaction_state` last",
    ),
    Lack.STATE_UNDECODABLE: Lesson(
        changed(STATE_1, lambda text: text.replace('"transactionStatus":2', '"transactionStatus":77')),
        lambda lab: lab.remove(STATE_1).copy(FOUR_TWO, "log-dirs/n2/__transaction_state-1"),
        "the brokers' own files",
    ),
    Lack.STATE_OF_TOMORROW: Lesson(
        lambda lab: lab.copy("kafka-4.4-tomorrow/capture-1", "segments").copy(
            "kafka-4.4-tomorrow/capture-2", "state-printed"
        ),
        lambda lab: lab.remove("segments", "state-printed").copy("kafka-4.4-tomorrow/capture-1", "log-dirs"),
        "the brokers' own files",
    ),
    Lack.STATE_NOT_WHOLE: Lesson(
        lambda lab: lab.copy(EMPTIED, "log-dirs"),
        by_the_kit,
        "copy all files of all its partitions from their leaders, by the script of `txn-analysis copy-kit`",
        settings=WORDS | {"transaction_max_timeout_ms": 20_000},
    ),
    Lack.EXPORT_NOT_WHOLE: Lesson(
        lambda lab: lab.copy("kafka-4.2/capture-2", "segments", "producer-snapshots").copy("kafka-4.2", "console"),
        lambda lab: lab.remove("console").copy("kafka-4.2/capture-2", "transaction-state"),
        "copy all files of all its partitions",
    ),
    Lack.LOG_ENDS_EARLY: Lesson(
        changed("segments/n1.orders-1.txt", lambda text: without_batches(text, 89, 105)),
        whole,
        "copy orders-1 again, and audit it with the state that you have",
    ),
    Lack.STATE_CLEANED: Lesson(
        by_the_kit_with_a_hole,
        with_another_copy_of_the_state,
        "another copy of these partitions beside this one, of another replica or of an earlier night",
        settings={"state_copied_last": True},
    ),
    Lack.HISTORY_GONE: Lesson(
        compacted,
        behind_an_earlier_night(compacted),
        "an earlier copy of `__transaction_state`, audited before this one into the same warehouse",
        settings={"state_copied_last": True, "capture": "later"},
        is_same_warehouse=True,
    ),
    Lack.LOG_NOT_WHOLE: Lesson(
        changed(ORDERS_0, lambda text: without_batches(text, LAST_BATCH - 1, LAST_BATCH)),
        whole,
        "copy all files of orders-0",
    ),
    Lack.LOG_NOT_COPIED: Lesson(
        a_night_without_orders_0,
        lambda lab: lab.copy("kafka-4.2/capture-2", "segments", "producer-snapshots"),
        "into the next capture",
        is_same_warehouse=True,
    ),
    Lack.NO_CLOCK: Lesson(
        lambda lab: dumped(lab, "deep", DEEP, data(0, 1), state=EMPTY_STATE),
        lambda _: None,
        "say with `--as-of TIME` when they were copied",
        then={"as_of_ms": COPIED_MS},
    ),
    Lack.WRITTEN_AFTER_COPY: Lesson(
        lambda lab: dumped(lab, "deep", SHALLOW, replace(data(0, 1), max_timestamp_ms=COPIED_MS + 60_000)),
        lambda _: None,
        "if the files were copied later than",
        then={"as_of_ms": COPIED_MS + 120_000},
    ),
    Lack.NO_RULE: Lesson(
        changed(STATE_0, in_a_state_of_tomorrow),
        lambda lab: lab.remove("*").copy("kafka-4.2/capture-2", *DUMPS, "producer-snapshots"),
        "copy the files again, when its coordinator has gone on",
    ),
    Lack.NO_TIME: Lesson(
        lambda lab: dumped(lab, "deep", SHALLOW, UNTIMED),
        lambda lab: dumped(lab, "deep", SHALLOW, UNTIMED, ANOTHERS_END),
        "again when other transactions have ended there",
    ),
    Lack.STATE_COUNT_OPEN: Lesson(
        lambda lab: dumped(lab, "deep", SHALLOW, data(0, 1), LATER, state=one_id()),
        lambda lab: lab.remove("state").copy(FOUR_TWO, "transaction-state"),
        "`--transaction-state-partitions N` with the true count",
        settings=WORDS | {"transaction_state_partitions": None, "as_of_ms": COPIED_MS},
        then={"transaction_state_partitions": 4},
    ),
    Lack.LINES_OF_OTHERS: Lesson(
        changed(ORDERS_0, lambda text: text + "Killed\n"), whole, "dump orders-0 again, without `2>&1`"
    ),
    Lack.TEXT_OF_CLIENTS: Lesson(
        lambda lab: dumped(lab, "deep", DEEP, data(0, 1, size_bytes=200), OPENS, NOTHING),
        lambda lab: dumped(lab, "shallow", SHALLOW, data(0, 1, size_bytes=200), OPENS, NOTHING),
        "without --deep-iteration and --print-data-log",
    ),
    Lack.CONTESTED_LINES: Lesson(
        lambda lab: dumped(lab, "deep", DEEP, data(0, 1, size_bytes=200), marker(1, 1), OPENS, data(3, 4)),
        lambda lab: dumped(lab, "shallow", SHALLOW, data(0, 1, size_bytes=200), marker(1, 1), OPENS, data(3, 4)),
        "without --deep-iteration and --print-data-log",
    ),
}


@pytest.mark.parametrize("lack", [*LESSONS], ids=lambda lack: lack.value)
def test_what_the_remedy_says_settles_it(lack: Lack, tmp_path: Path, empty_warehouse: Path) -> None:
    lab, lesson = Lab(tmp_path, empty_warehouse), LESSONS[lack]
    lesson.take(lab)
    before = lab.audit(fresh=not lesson.is_same_warehouse, **lesson.settings)
    remedies = {remedy.lack: remedy for remedy in before.outcome.settled_by}
    assert lack in remedies
    assert lesson.words in remedies[lack].text
    assert _is_no_word_first(remedies[lack])
    lesson.do(lab)
    after = lab.audit(fresh=not lesson.is_same_warehouse, **lesson.settings | lesson.then)
    assert lack not in lacks(after)


def test_a_log_that_goes_on_with_other_line_ends_is_never_green(tmp_path: Path, empty_warehouse: Path) -> None:
    """Nobody sees what is open behind them."""
    lab = Lab(tmp_path, empty_warehouse).copy(FOUR_TWO, "transaction-state")
    before, mark, behind = (CASES / FOUR_TWO / ORDERS_0).read_text().partition("baseOffset: 113 ")
    lab.write("log.txt", before + (mark + behind).replace("\n", "\r\n"))
    report = lab.audit()
    assert (report.outcome.answer, lacks(report)) == (Outcome.COULD_NOT_TELL, {Lack.LINES_OF_OTHERS})


def test_a_line_of_a_snapshot_that_is_not_understood_is_never_green(tmp_path: Path, empty_warehouse: Path) -> None:
    """The data of producer 3 is deleted: that its transaction is open stands in this line alone."""
    edge = "kafka-4.2-edge/capture-2"
    lab = Lab(tmp_path, empty_warehouse).copy(edge, "transaction-state")
    for part in ("segments", "producer-snapshots"):
        text = (CASES / edge / part / "n1.trades-0.txt").read_text()
        lab.write(f"{part}.txt", text.replace("\nproducerId: 3 ", "\n> producerId: 3 "))
    report = lab.audit()
    assert (report.outcome.answer, lacks(report)) == (Outcome.COULD_NOT_TELL, {Lack.LINES_OF_OTHERS})


def _is_no_word_first(remedy: Remedy) -> bool:
    words = ("`--state-copied-last`", "`--no-records-lost`", "`--transaction-state-complete`")
    return not remedy.text.startswith(words)


def of_tomorrow(rule: Rule) -> Rule:
    def condition(case: Case) -> Truth:
        return rule.condition(case)

    condition.__name__ = f"{rule.name}_of_tomorrow"
    return Rule(condition, rule.verdict)


def test_what_a_later_version_judged_is_settled_by_this_one(
    tmp_path: Path, empty_warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path, empty_warehouse)
    lab.copy(EMPTIED, "log-dirs")
    with monkeypatch.context() as later:
        for rule in rules.RULES:
            later.setitem(words.WORDS, f"{rule.name}_of_tomorrow", words.WORDS[rule.name])
        later.setattr(rules, "RULES", tuple(map(of_tomorrow, rules.RULES)))
        run = lab.audit(fresh=False).run
    warehouse, settings = opened(lab.root / "warehouse-0"), Settings()
    (remedy,) = load_report(warehouse, settings, run.run_id).outcome.settled_by
    assert (remedy.lack, remedy.text) == (Lack.OF_ANOTHER_VERSION, "audit the same files again with this version")
    lab.audit(fresh=False)
    assert Lack.OF_ANOTHER_VERSION not in lacks(load_report(warehouse, settings))


def test_every_lack_has_its_lesson() -> None:
    assert set(Lack) - {Lack.OF_ANOTHER_VERSION} == set(LESSONS)


def test_every_kind_of_problem_of_a_log_is_a_lack() -> None:
    assert set(LACK_OF_PROBLEM) == set(ProblemKind)


def test_a_state_that_is_not_decoded_is_given_and_not_missing(tmp_path: Path, empty_warehouse: Path) -> None:
    lab = Lab(tmp_path, empty_warehouse)
    without_decoder(lab)
    report = lab.audit(**WORDS)
    evidence = {words for row in report.findings for words in row.missing_evidence}
    assert evidence == {"__transaction_state: dumped without --transaction-log-decoder"}
    assert "4 partitions of __transaction_state were given, and dumped without --transaction-log-decoder" in read(
        report
    )


def test_a_partition_that_is_not_decoded_beside_others_is_given_and_not_missing(
    tmp_path: Path, empty_warehouse: Path
) -> None:
    lab = Lab(tmp_path, empty_warehouse)
    without_decoder(lab, partition="-2")
    report = lab.audit(**WORDS)
    evidence = {words for row in report.findings for words in row.missing_evidence}
    assert "__transaction_state-2: dumped without --transaction-log-decoder" in evidence
    assert not any("missing" in words for words in evidence)
    assert "3 of 4 partitions of __transaction_state dumped without --transaction-log-decoder: 2" in read(report)


def read(report: AuditReport) -> str:
    """What was read, as the report says it, its lines glued."""
    return " ".join(text_report(report).partition("-- What was read")[2].split())


def expired(text: str, transactional_id: str) -> str:
    """A decoded dump of the state without all records of an id, as compaction leaves it when the id has expired."""
    head, *batches = re.split(r"(?m)^(?=baseOffset: )", text)
    position, kept = 0, [head]
    for batch in batches:
        if f'"transactionalId":"{transactional_id}"' not in batch:
            kept.append(re.sub(r" position: \d+ ", f" position: {position} ", batch, count=1))
            position += int(batch.partition(" size: ")[2].split()[0])
    return "".join(kept)


def test_a_state_that_lacks_what_has_expired_is_settled_by_when_ids_do(tmp_path: Path, empty_warehouse: Path) -> None:
    lab = Lab(tmp_path, empty_warehouse)
    changed(STATE_1, lambda text: expired(text, "order-service-2"))(lab)
    remedies = {remedy.lack: remedy.text for remedy in lab.audit(**WORDS).outcome.settled_by}
    assert "or `--transactional-id-expiration-ms N`, if" in remedies[Lack.STATE_OF_ANOTHER]
    assert Lack.STATE_OF_ANOTHER not in lacks(lab.audit(**WORDS, transactional_id_expiration_ms=30_000))

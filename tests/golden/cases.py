"""What the golden files show: cases, and what a user asks of each.

A case is audited once, in a warehouse of its own; then each question is asked of its last run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.captures import StateForm
from benchmarks.wide_history import Width

Words = tuple[str, ...]

ONE_HOST = ("--max-clock-skew-ms", "0")
FOUR = ("--transaction-state-partitions", "4", *ONE_HOST)
TRUE = ("--state-copied-last", "--no-records-lost")
DUMPS = ("segments", "transaction-state")
FILES = ("log-dirs",)


class Wide(NamedTuple):
    """A capture that is made when it is audited."""

    width: Width
    form: StateForm


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: of its folder.
        nights: what each audit in turn is given: files and folders under data/cases/, or a capture to make.
        who: a transactional id, of which `describe` and `explain` are asked.
        offset: topic, partition and offset, of which `explain` is asked.
        flags: of each audit; a file is meant as one under data/cases/.
        group: a consumer group, of which `explain` is asked as well.
        is_text_too: the text of each answer is kept as well.
        is_page_too: the page of the report is kept as well.
    """

    name: str
    nights: tuple[Words | Wide, ...]
    who: str
    offset: tuple[str, int, int]
    flags: Words = FOUR
    group: str = ""
    is_text_too: bool = False
    is_page_too: bool = False


class Question(NamedTuple):
    """One golden file: its name, and the words behind `txn-analysis`."""

    file: str
    words: Words


# When a report is read; of the wall clock nothing may be in an answer.
NOW = ("--now", "2026-11-21T04:00:00Z")


def questions(case: Case) -> Iterator[Question]:
    """What is asked of a case, in the forms that are kept of it."""
    of_id = ("--transactional-id", case.who)
    topic, partition, offset = case.offset
    rows = {
        "report": ("report", *NOW),
        "find-hanging": ("find-hanging",),
        "list": ("list",),
        "describe": ("describe", *of_id),
        "describe-producers": ("describe-producers", "--all"),
        "ended": ("ended", "--limit", "15"),
        "stats": ("ended", "--by", "application"),
        "stats-by-id": ("ended", "--by", "id", "--limit", "8"),
        "explain": ("explain",),
        "explain-offset": ("explain", f"{topic}-{partition}:{offset}"),
        "who": ("explain", *of_id),
        "verify": ("verify",),
        "verify-history": ("verify", "--history"),
        "captures": ("captures",),
    }
    if case.group:
        rows["who-group"] = ("explain", "--group", case.group)
    plan = ("abort-plan", "--expired")
    for name, words in rows.items():
        yield Question(f"{name}.json", (*words, "--format", "json"))
    yield Question("abort-plan.ndjson", (*plan, "--format", "ndjson"))
    yield Question("write-txn-markers.json", (*plan, "--format", "write-txn-markers"))
    if case.is_text_too:
        for name, words in rows.items():
            yield Question(f"{name}.txt", (*words, "--format", "text"))
        yield Question("abort-plan.sh", (*plan, "--format", "commands"))
        yield Question("find-hanging.csv", ("find-hanging", "--format", "csv"))
        yield Question("stats.csv", ("ended", "--by", "application", "--format", "csv"))
        yield Question("findings.csv", ("report", *NOW, "--format", "csv"))
        yield Question("report.markdown.txt", ("report", *NOW, "--format", "markdown"))
    if case.is_page_too:
        yield Question("report.html", ("report", *NOW, "--format", "html"))


def _of(case: str, *parts: str) -> Words:
    return tuple(f"{case}/{part}" for part in parts)


CASES = (
    Case("demo", (_of("kafka-4.2/capture-1", *DUMPS),), "billing-worker-17", ("orders", 0, 161), is_text_too=True),
    Case(
        "before-and-after-a-repair",
        (
            _of("kafka-4.2/capture-1", *FILES),
            _of("kafka-4.2/capture-2", *DUMPS, "producer-snapshots"),
            _of("kafka-4.2/capture-3", *DUMPS, "producer-snapshots"),
        ),
        "inventory-sync",
        ("payments", 0, 187),
        is_text_too=True,
        is_page_too=True,
    ),
    Case(
        "an-export-of-the-state",
        (_of("kafka-4.2", "capture-2/segments", "capture-2/producer-snapshots", "console"),),
        'settlement,eu=west "q"',
        ("ledger.events", 0, 168),
        (*FOUR, "--transaction-state-complete"),
    ),
    Case("kafka-2.8", (_of("kafka-2.8/capture-1", *DUMPS, "producer-snapshots"),), "ledger-writer", ("orders", 2, 155)),
    Case(
        "edge",
        (
            _of("kafka-4.2-edge/capture-1", *DUMPS, "group-offsets"),
            _of("kafka-4.2-edge/capture-2", *DUMPS, "group-offsets", "producer-snapshots"),
        ),
        "cdc-accounts",
        ("accounts", 1, 4),
        (*FOUR, "--topic-config", "kafka-4.2-edge/topics.txt", "--free-bytes", "1000000000"),
        group="billing-readers",
        is_text_too=True,
    ),
    Case(
        "edge-of-log-directories",
        (_of("kafka-4.2-edge/capture-1", *FILES, "segments/n1.accounts-0.txt", "segments/n1.trades-0.txt"),),
        "risk-engine-2",
        ("trades-eu", 0, 57),
    ),
    Case(
        "a-lost-marker",
        (_of("kafka-4.2-lost-marker/capture-1", *FILES), _of("kafka-4.2-lost-marker/capture-2", *FILES)),
        "payout-batch-9",
        ("payouts", 0, 24),
    ),
    Case(
        "half-an-upgrade",
        (_of("kafka-4.2-mixed/capture-1", *FILES), _of("kafka-4.2-mixed/capture-2", *FILES)),
        "ledger-0",
        ("orders", 3, 0),
        (*FOUR, "--transaction-max-timeout-ms", "15000"),
    ),
    Case("used-up-epochs", (_of("kafka-4.2-rotation/capture-1", *FILES),), "nightly-ledger", ("ledger", 0, 126)),
    Case(
        "three-nodes",
        (_of("kafka-4.2-three-nodes/capture-1", *FILES), _of("kafka-4.2-three-nodes/capture-2", *FILES)),
        "shop-3",
        ("orders", 2, 5),
    ),
    Case(
        "beside-a-checkpoint-of-flinks",
        (_of("kafka-4.3-flink/capture-1", *FILES),),
        "pay-sink-0-6",
        ("out.pay-sink", 0, 16),
        (*FOUR, *TRUE),
        is_text_too=True,
    ),
    Case("nothing-hangs", (_of("kafka-4.2-tv2/capture-1", *DUMPS),), "nightly-etl-0", ("refunds", 0, 14)),
    Case("busy", (_of("kafka-4.3-busy/capture-1", *FILES),), "billing-worker", ("orders", 6, 0), (*FOUR, *TRUE)),
    Case("kafkas-own-cases", (_of("kafka-4.3-find-hanging/capture-1", *FILES),), "busy-writer", ("audit-log", 2, 0)),
    Case(
        "tiered",
        (_of("kafka-4.3-tiered/capture-1", *FILES),),
        "importer",
        ("clicks", 0, 15),
        (*FOUR, *TRUE, "--topic-config", "kafka-4.3-tiered/capture-1/topics.txt"),
    ),
    Case(
        "state-older-than-the-log",
        (
            _of("kafka-4.3-wrong-order/capture-1", "shallow", "state"),
            _of("kafka-4.3-wrong-order", "capture-1/shallow", "capture-2/state"),
        ),
        "shop-0",
        ("orders", 2, 24),
        (*FOUR, "--state-copied-last"),
    ),
    Case("files-of-tomorrow", (_of("kafka-4.4-tomorrow/capture-1", *FILES),), "settlement", ("remote", 0, 0)),
    Case(
        "texts-of-tomorrow",
        (_of("kafka-4.4-tomorrow", "capture-1/segments", "capture-2/state-printed"),),
        "billing-worker",
        ("orders", 1, 3),
    ),
    Case("upgraded", (_of("kafka-4.4-upgrade/capture-1", *FILES),), "month-end", ("quiet", 1, 3), (*FOUR, *TRUE)),
    Case("an-old-tools-dumps", (_of("grammar", "2.2.2"),), "billing-worker-17", ("orders", 0, 161)),
    Case(
        "a-payload-that-imitates-a-dump",
        (("forged-payload/kafka-4.2.payments-0.print-data-log.txt",),),
        "inventory-sync",
        ("payments", 0, 187),
    ),
    Case(
        "a-twins-state",
        ((*_of("kafka-4.2/capture-1", "segments"), *_of("kafka-2.8/capture-1", "transaction-state")),),
        "ledger-writer",
        ("orders", 0, 161),
    ),
    Case(
        "a-twins-state-without-commits",
        (_of("twin-no-commit", *DUMPS),),
        "t4",
        ("orders", 1, 1),
        ("--transaction-state-partitions", "3", "--max-clock-skew-ms", "1000", *TRUE),
    ),
    Case(
        "many-partitions",
        (Wide(Width(partitions=16, batches=8, producers=12, ids=20, hanging=3), StateForm.DUMP_JSON),),
        "writer-00000007",
        ("bench.orders", 0, 20),
        ONE_HOST,
    ),
    Case(
        "many-findings",
        (Wide(Width(partitions=4, batches=48, producers=20, ids=30, hanging=21), StateForm.BINARY),),
        "writer-00000007",
        ("bench.orders", 0, 20),
        ONE_HOST,
        is_text_too=True,
    ),
)

"""The whole corpus of hostile texts, in one go, or some percent of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from tests.proof.hostile.checks import problems_of
from tests.proof.hostile.numbers import out_of_range
from tests.proof.hostile.scenes import SETTINGS, Scene, forged_scenes, named_scenes
from tests.proof.hostile.texts import bad_json, odd_payloads, slow_lines
from tests.proof.part import Report, counted, never
from tests.tools.harness import audit_files
from tests.tools.inputs import RANGE_BYTES, InputReader
from tests.tools.repository import CASES
from txn_analysis.settings import Settings

HEAD_BYTES = 4096
SLOW_BYTES = 1 << 18
SMALL_RANGES_BYTES = (300, 1_500)  # so that tasks begin within the lines that are forged
CUT_FILES = (
    "grammar/4.2.0/orders-0.payload.txt",
    "grammar/2.8.2/orders-0.payload.txt",
    "grammar/2.1.1/orders-0.shallow.txt",
    "grammar/4.2.0/orders-0.snapshot.txt",
    "grammar/4.2.0/orders-0.txnindex.txt",
    "grammar/4.2.0/transaction_state-1.txt",
    "grammar/2.8.2/transaction_state-1.txt",
    "kafka-2.8/console/transaction-state.txt",
    "kafka-4.2/console/transaction-state.json",
)


@dataclass
class CorpusReport(Report):
    """What came of the corpus."""

    inputs: int = counted("hostile inputs tried")
    wrongly_raised: int = never("findings wrongly raised")
    unaccounted_bytes: int = never("bytes unaccounted")


def cut_anywhere(file: str) -> Iterator[tuple[str, bytes]]:
    """A real dump cut at every byte of its first 4 KiB."""
    head = (CASES / file).read_bytes()[:HEAD_BYTES]
    return ((f"{file} cut at byte {end}", head[:end]) for end in range(len(head)))


def run_corpus(percent: int = 100) -> CorpusReport:
    """Reads every text of the corpus; of the many cut ones, odd numbers and small ranges so many percent."""
    every = max(1, round(100 / percent))
    report, reader = CorpusReport(), InputReader.in_memory()
    settings = Settings.model_validate({"warehouse": "none"} | SETTINGS)
    many = chain(out_of_range(), *(cut_anywhere(file) for file in CUT_FILES))
    texts = chain(
        odd_payloads().items(),
        bad_json().items(),
        slow_lines(SLOW_BYTES).items(),
        (item for number, item in enumerate(many) if number % every == 0),
    )
    try:
        for name, text in texts:
            report.inputs += 1
            report.problems += [f"{name}: {problem}" for problem in problems_of(reader, text)]
        for scene, range_bytes in _audited_scenes(every):
            report.inputs += len(scene.files)
            answer = audit_files(reader, {"capture": scene.files}, settings, range_bytes=range_bytes)
            report.wrongly_raised += len(scene.wrong(answer.findings))
            report.unaccounted_bytes += answer.unaccounted_bytes
    finally:
        reader.close()
    return report


def _audited_scenes(every: int) -> Iterator[tuple[Scene, int]]:
    """Each scene as it would be read, and the forged ones (each `every`-th) in small ranges as well."""
    for scene in chain(forged_scenes(), named_scenes()):
        yield scene, RANGE_BYTES
    for scene in islice(forged_scenes(), 0, None, every):
        for range_bytes in SMALL_RANGES_BYTES:
            yield scene, range_bytes

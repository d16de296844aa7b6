"""The safety property of the contract's section 6, held against mutations of real captures and of worlds."""

import random
from dataclasses import dataclass
from typing import Any

from tests.proof.hostile.incremental import proven, rows_differ
from tests.proof.hostile.mutations import Given, Mutator
from tests.proof.hostile.subjects import Meaning, Subject, real_cases, simulated
from tests.proof.part import Report, counted, never
from tests.tools.harness import Answer, audit_files
from tests.tools.inputs import InputReader
from txn_analysis.settings import Settings

Row = dict[str, Any]


@dataclass
class SafetyReport(Report):
    """What came of a run."""

    mutations: int = counted("mutations tried")
    still_hanging: int = counted("hanging ones still found", least=1)
    wrongly_raised: int = never("findings wrongly raised")
    unaccounted_bytes: int = never("bytes unaccounted")


def run_safety(mutations: int, seed: int, first: int = 0) -> SafetyReport:
    """Try `mutations` mutations, numbered from `first`; each depends on the seed and its number only."""
    report, reader = SafetyReport(), InputReader.in_memory()
    try:
        for number in range(first, first + mutations):
            Trial(seed, number, reader, report).run()
    finally:
        reader.close()
    return report


@dataclass
class Trial:
    """One mutation: drawn, judged, and noted in the report."""

    seed: int
    number: int
    reader: InputReader
    report: SafetyReport

    def run(self) -> None:
        """Take evidence away, and hand the rest over in another way."""
        source = random.Random(f"{self.seed}/{self.number}")
        subject = self._subject(source)
        mutator = Mutator(source, subject)
        given = mutator.start()
        is_whole = source.random() < 0.2
        if not is_whole:
            given = mutator.taken_away(given)
        self.report.mutations += 1
        answer = self._judge(given)
        if answer is None:
            return
        self._note(subject, given, answer)
        if is_whole or source.random() < 0.3:
            self._compare(answer, mutator.handed_over_differently(given, is_whole=is_whole))

    def _subject(self, source: random.Random) -> Subject:
        # What no world has (offsets of groups, old epochs, LogAppendTime), real captures have.
        if source.random() < 0.5:
            return source.choice(real_cases())
        return simulated(f"{self.seed}/{self.number}")

    def _judge(self, given: Given) -> Answer | None:
        if not any(given.captures.values()):
            return None
        try:
            return audit_files(
                self.reader, given.captures, Settings.model_validate(given.settings), range_bytes=given.range_bytes
            )
        except Exception as error:  # noqa: BLE001 - any crash is a finding, and the others must still be tried
            self._problem(given, f"{type(error).__name__}: {error}")
            return None

    def _note(self, subject: Subject, given: Given, answer: Answer) -> None:
        if answer.unaccounted_bytes:
            self.report.unaccounted_bytes += answer.unaccounted_bytes
            self._problem(given, f"{answer.unaccounted_bytes} bytes unaccounted for")
        for row in answer.hanging:
            meaning = subject.meaning(row, answer)
            if meaning is Meaning.WRONG:
                self.report.wrongly_raised += 1
                self._problem(given, f"wrongly raised: {shown(row)}")
            elif meaning is Meaning.RIGHT:
                self.report.still_hanging += 1

    def _compare(self, before: Answer, other: Given) -> None:
        after = self._judge(other)
        if after is None:
            return
        for name, ours, theirs in (
            ("findings", before.findings, after.findings),
            ("health", proven(before), proven(after)),
        ):
            if changed := rows_differ(ours, theirs):
                self._problem(other, f"{name} changed: {' | '.join(changed[:3])}"[:600])

    def _problem(self, given: Given, what: str) -> None:
        repeat = f"run_safety(1, {self.seed}, {self.number})"
        words = f"{', '.join(f'{n}={v}' for n, v in sorted(given.settings.items()))}; {'; '.join(given.done)}"
        self.report.problems.append(f"{what}\n    {repeat}\n    {words}")


def shown(row: Row) -> str:
    """A finding in one line."""
    place = f"{row['topic']}-{row['partition']} producer {row['producer_id']} from {row['txn_start_offset']}"
    return f"{place} to {row['last_offset']}: {row['verdict']} by {row['rule']}"

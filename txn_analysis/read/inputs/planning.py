"""All files of a call become planned inputs: texts by their sections, brokers' own files by what their survey found."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from txn_analysis.kafka.sections import BINARY, BINARY_VERIFIED, LOG_KINDS
from txn_analysis.read.inputs.planned_input import PlannedInput, Section, plan_text
from txn_analysis.read.inputs.recognise import Refusal
from txn_analysis.read.inputs.survey import DIGEST_BYTES
from txn_analysis.read.inputs.survey_job import survey_files

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from txn_analysis.read.inputs.find_files import SourceFile
    from txn_analysis.read.inputs.survey_job import FileSurvey
    from txn_analysis.read.log_dir.files import BrokerFile
    from txn_analysis.read.log_dir.survey import BrokerFacts
    from txn_analysis.spark.when_needed import Spark

LOG_DIR = "log_dir"  # the contract's name of what a broker's own files are
GONE = "the file disappeared, or became shorter, while it was read"


@dataclass(frozen=True)
class Planning:
    """The inputs of a call, and how many files of a log directory are never evidence, by what they are."""

    inputs: list[PlannedInput]
    passed_over: dict[str, int]

    @property
    def left_out(self) -> str:
        """What was passed over, in one line; empty where nothing was."""
        return ", ".join(f"{count} {what}" for what, count in sorted(self.passed_over.items()))


def plan_inputs(spark: Spark, files: Sequence[SourceFile], *, is_verified: bool = False) -> Planning:
    """What each file is, by reading it once; a content given twice is planned once, by its first path.

    With `is_verified` the checksums of all batches of brokers' own segments are to be looked at. Such an input has
    another fingerprint, so that one that was read without is read again.
    """
    survey = survey_files(spark, sorted(files), is_verified=is_verified)
    same: dict[str, list[PlannedInput]] = {}
    gone: set[str] = set()
    for found in survey.files:
        plan = _plan(found, is_verified=is_verified)
        same.setdefault(plan.input_id, []).append(plan)
        if found.facts is not None and found.facts.is_gone:
            gone.add(plan.input_id)
    inputs = [replace(first, same_paths=tuple(o.path for o in others)) for first, *others in same.values()]
    kept = without_changed(inputs, gone)
    lost = {"files that disappeared while they were read": len(gone)} if gone else {}
    return Planning(kept, survey.passed_over | lost)


def _plan(found: FileSurvey, *, is_verified: bool) -> PlannedInput:
    if isinstance(found.broker, Refusal):
        return replace(plan_text(found), problem=f"byte 0: {found.broker}")
    if found.broker is None or found.facts is None:
        return plan_text(found)
    return plan_broker_file(found.source, found.broker, found.facts, is_verified=is_verified)


def plan_broker_file(source: SourceFile, file: BrokerFile, facts: BrokerFacts, *, is_verified: bool) -> PlannedInput:
    """The plan of one file of a log directory; nothing is read here."""
    sections = _sections(file, facts, BINARY_VERIFIED if is_verified and file.kind in LOG_KINDS else BINARY)
    return PlannedInput(
        path=source.path,
        input_id=facts.digest.hex(),
        kind=LOG_DIR if sections or facts.stated else None,
        grammar=sections[0].grammar if sections else BINARY,
        compression=None,
        size_bytes=facts.size_bytes,
        text_bytes=facts.size_bytes,
        problem=None if facts.refusal is None else f"byte 0: {facts.refusal}",
        sections=sections,
        rejects=facts.rejects,
    )


def _sections(file: BrokerFile, facts: BrokerFacts, grammar: str) -> tuple[Section, ...]:
    whole = Section(
        index=0,
        kind=file.kind,
        dump_path=file.place,
        topic=file.topic,
        partition=file.partition,
        file_base_offset=file.base_offset,
        text_start_bytes=0,
        text_end_bytes=facts.end,
        torn_bytes=facts.torn_bytes,
        is_start_proven=True,
        grammar=grammar,
        cuts=facts.cuts,
    )
    if facts.has_section:
        return (whole,)
    return tuple(
        replace(
            whole,
            index=number,
            kind=said.kind,
            topic=said.topic,
            partition=said.partition,
            file_base_offset=said.offset,
            text_start_bytes=said.start,
            text_end_bytes=said.end,
            stated=said.word,
        )
        for number, said in enumerate(facts.stated)
    )


def without_changed(inputs: Sequence[PlannedInput], changed: Collection[str]) -> list[PlannedInput]:
    """The inputs without brokers' files that were deleted or cut while they were read.

    An old segment is missing then as if it had been deleted before: the log begins later, or has a hole. The last
    segment of a partition stays, with nothing of it proven: what stood in it could have ended transactions.
    """
    if not changed:
        return list(inputs)
    newest: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    for plan in inputs:
        for s in plan.sections if plan.input_id not in changed else ():
            if s.kind in LOG_KINDS:
                newest[s.topic, s.partition] = max(newest[s.topic, s.partition], s.file_base_offset)
    kept = []
    for plan in inputs:
        if plan.input_id not in changed:
            kept.append(plan)
        elif any(s.kind in LOG_KINDS and s.file_base_offset > newest[s.topic, s.partition] for s in plan.sections):
            kept.append(_unread(plan))
    return kept


def _unread(plan: PlannedInput) -> PlannedInput:
    """The plan of a segment of which nothing was seen but that it was there; like no other input's."""
    size = plan.size_bytes
    digest = blake2b(f"{plan.input_id} unread".encode(), digest_size=DIGEST_BYTES).hexdigest()
    sections = tuple(replace(s, text_end_bytes=size, torn_bytes=0, cuts=()) for s in plan.sections)
    return replace(plan, input_id=digest, sections=sections, rejects=((0, size, GONE),) if size else ())

"""Plan: what each input is, which sections it has, and which byte ranges of them the scan reads.

Plan, scan, link: a dump is cut along its `Dumping …` sections and then by bytes, so that one file of any size is read
by many tasks; the scan parses each range for itself, and the position chain links them again.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise

from txn_analysis.errors import InputError
from txn_analysis.files.store import Version
from txn_analysis.kafka.names import (
    BINARY_GRAMMARS,
    CLUSTER_ID,
    CONSOLE_JSON,
    CONSOLE_KINDS,
    CONSOLE_TEXT,
    LOG,
    SNAPSHOT,
    STATE,
    STATE_TOPIC,
    TXNINDEX,
)
from txn_analysis.reading.inputs.find_files import SourceFile
from txn_analysis.reading.inputs.recognise import Recognition, recognise
from txn_analysis.reading.inputs.refusals import Refusal, Refused
from txn_analysis.reading.inputs.survey import (
    DIGEST_BYTES,
    PROVEN,
    PROVEN_IF_DECODED,
    ChunkFacts,
    Cut,
    ReadFailure,
    SectionMark,
    TrailerMark,
)
from txn_analysis.reading.text.section import NO_PARTITION, Section
from txn_analysis.tables.inputs import Manifest, log_dir

KIND_NAMES = {
    LOG: "log_dump",
    STATE: "transaction_state_dump",
    SNAPSHOT: "snapshot_dump",
    TXNINDEX: "aborted_txn_dump",
    CONSOLE_TEXT: "transaction_state_console",
    CONSOLE_JSON: "transaction_state_console",
}
_SKIP = "Or pass --skip-unrecognised: the report then names what was left out"
_SHOWN_PROBLEMS = 3


@dataclass(frozen=True)
class PlannedInput:
    """One input. `kind` joins the contract's names of its sections' kinds by `+`; NULL where nothing was recognised.

    `problem` is why the file, or a part of it, cannot be read: `byte N: what is wrong. What to do`. `same_paths` are
    further files with the same content, which are not read. `rejects` are spans (start, end, reason) that planning
    could not understand, of a broker's own file; those of a text are found by reading it again. A broker's file
    `is_gone` that was deleted or cut before it was looked at. `version` is an object's, as it was listed. `manifest` is
    what a `txn-capture.json` says. `refused` are the kinds of `problem`.
    """

    path: str
    input_id: str
    kind: str | None
    grammar: str | None
    size_bytes: int
    text_bytes: int
    sections: tuple[Section, ...]
    compression: str | None = None
    problem: str | None = None
    same_paths: tuple[str, ...] = ()
    rejects: tuple[tuple[int, int, str], ...] = ()
    is_gone: bool = False
    version: Version | None = None
    manifest: Manifest | None = None
    refused: tuple[Refused, ...] = ()

    @property
    def is_broker_file(self) -> bool:
        """A file of a broker's log directory, no text."""
        return self.grammar in BINARY_GRAMMARS


def check_inputs(planned: Sequence[PlannedInput], skip_unrecognised: bool, misfits: Sequence[str] = ()) -> None:
    """Ends the run before any verdict where an input, or a part of one, is not understood.

    Args:
        planned: the inputs.
        skip_unrecognised: what is not understood is left out instead.
        misfits: further lines: why a manifest is not that of the files.

    Raises:
        InputError: one line `PATH: byte N: what is wrong. What to do` for each such input, unless to be skipped; the
            last one says that they can be.
    """
    problems = [f"{plan.path}: {plan.problem}{_the_same(plan)}" for plan in planned if plan.problem is not None]
    problems += misfits
    if problems and not skip_unrecognised:
        raise InputError(problems, _SKIP)


def _the_same(plan: PlannedInput) -> str:
    names = list(plan.same_paths[:_SHOWN_PROBLEMS])
    if len(plan.same_paths) > _SHOWN_PROBLEMS:
        names.append(f"{len(plan.same_paths) - _SHOWN_PROBLEMS} more")
    return f" (the same: {', '.join(names)})" if names else ""


def plan_text(
    source: SourceFile, compression: str | None, facts: Sequence[ChunkFacts | PlannedInput | ReadFailure]
) -> PlannedInput:
    """The plan of one input from what its chunks say, and what kept the rest of it from being read; reads nothing."""
    chunks = [fact for fact in facts if isinstance(fact, ChunkFacts)]
    failure = next((fact for fact in facts if isinstance(fact, ReadFailure)), None)
    recognition = (chunks[0].recognition if chunks else None) or recognise(b"", 0)
    text_bytes = chunks[-1].end if chunks else 0
    sections: list[Section] = []
    problems: list[tuple[int, Refusal]] = []
    if failure is not None:
        problems.append((failure.offset, Refused.UNREADABLE.of(failure.reason, how=failure.remedy)))
    elif isinstance(recognition, Refusal):
        problems.append((0, recognition))
    else:
        # The JSON formatter writes no newline after an object, so only the object itself tells whether it is whole.
        torn_at = chunks[-1].cut_object if recognition.kind == CONSOLE_JSON else _torn_at(chunks, text_bytes)
        text_end = text_bytes if torn_at is None else torn_at
        if recognition.kind in CONSOLE_KINDS:
            grammar = recognition.grammar or ""
            sections = [Section(recognition.kind, STATE_TOPIC, NO_PARTITION, 0, 0, text_end, grammar)]
        else:
            sections, problems = _dump_sections(recognition, chunks, text_end)
        if torn_at is not None:
            problems.append((torn_at, Refused.CUT_LINE.of()))
    return PlannedInput(
        path=source.path,
        input_id=_input_id(chunks, None if failure is None else source.path),
        kind="+".join(dict.fromkeys(KIND_NAMES[section.kind] for section in sections)) or None,
        grammar="+".join(dict.fromkeys(section.grammar for section in sections)) or None,
        compression=compression,
        size_bytes=source.size_bytes,
        text_bytes=text_bytes,
        problem=_joined(problems),
        sections=tuple(sections),
        version=source.version,
        refused=tuple(dict.fromkeys(refusal.kind for _, refusal in problems)),
    )


def _input_id(chunks: Sequence[ChunkFacts], unread_path: str | None) -> str:
    """A fingerprint of the text alone: the same text under another name, or compressed, is the same input.

    What could not be read to its end is no other file's equal, so its name takes the place of the rest of its text.
    """
    digest = blake2b(b"".join(chunk.digest for chunk in chunks), digest_size=DIGEST_BYTES)
    if unread_path is not None:
        digest.update(unread_path.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _joined(problems: list[tuple[int, Refusal]]) -> str | None:
    in_order = sorted(problems, key=lambda problem: (problem[0], problem[1].kind.name))
    shown = [f"byte {at}: {what}" for at, what in in_order[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        shown.append(f"and {len(problems) - _SHOWN_PROBLEMS} more such places in this file")
    return "; ".join(shown) or None


def _torn_at(chunks: Sequence[ChunkFacts], text_bytes: int) -> int | None:
    """Where a last line without a newline begins; None where the text ends with a newline."""
    last_newline = next((c.last_newline for c in reversed(chunks) if c.last_newline is not None), -1)
    return last_newline + 1 if last_newline + 1 < text_bytes else None


def _dump_sections(
    recognition: Recognition, chunks: Sequence[ChunkFacts], text_end: int
) -> tuple[list[Section], list[tuple[int, Refusal]]]:
    problems: list[tuple[int, Refusal]] = []
    marks = _believed_marks(recognition.start, chunks)
    if not marks or marks[0][0].start != recognition.start:
        problems.append((recognition.start, Refused.NO_FILE_NAMED.of()))
    trailers = {trailer.end: trailer for chunk in chunks for trailer in chunk.trailers}
    sections: list[Section] = []
    ends = [*(mark.start for mark, _ in marks[1:]), text_end][: len(marks)]
    cuts = [*(_cut_between(one, other) for (one, _), (other, _) in pairwise(marks)), chunks[-1].cut][: len(marks)]
    for (mark, is_proven), end, cut in zip(marks, ends, cuts, strict=True):
        if cut is not None and isinstance(mark.section, Section):
            problems.append((cut.start, Refused.CUT_BATCH.of(cut)))
        if isinstance(mark.section, Refusal):
            problems.append((mark.start, mark.section))
        elif mark.section is None:
            problems.append((mark.start, Refused.CUT_HEADER.of()))
        elif cut is None or end == text_end:  # what is wrong with a file is wrong with its last section alone
            sections.append(_section(len(sections), mark, end, trailers.get(end), is_proven=is_proven))
    return sections, problems


def _cut_between(mark: SectionMark, following: SectionMark) -> Cut | None:
    """How a section was cut that another one follows; a record of a client may hold what looks like the next one."""
    cut = following.cut_before
    return cut if cut is not None and (cut.seen_count == 0 or mark.is_decoded) else None


def _believed_marks(first: int, chunks: Sequence[ChunkFacts]) -> list[tuple[SectionMark, bool]]:
    """The section starts of a dump, and whether each is proven.

    A line that can stand inside a record and begins nothing readable is left in the section before, as its text.
    """
    believed: list[tuple[SectionMark, bool]] = []
    reach_before = 0  # of the large records in the chunks before
    for chunk in chunks:
        for mark in chunk.marks:
            is_hidden = mark.anchor > 0 and reach_before > mark.anchor
            follows_decoded = bool(believed) and believed[-1][1] and believed[-1][0].is_decoded
            is_proven = mark.proof == PROVEN or (mark.proof == PROVEN_IF_DECODED and follows_decoded)
            is_proven = mark.start == first or (is_proven and not is_hidden)
            if is_proven or (isinstance(mark.section, Section) and mark.start > first):
                believed.append((mark, is_proven))
        reach_before = max(reach_before, chunk.reach)
    return believed


def _section(index: int, mark: SectionMark, end: int, trailer: TrailerMark | None, *, is_proven: bool) -> Section:
    """The section of a mark, from what its first lines show of it."""
    assert isinstance(mark.section, Section)
    section = replace(mark.section, index=index, is_start_proven=is_proven)
    name = re.split(r"[/\\]", section.dump_path)[-1]
    if trailer is None or trailer.start < mark.body_start or trailer.file_name != name:
        return replace(section, text_end_bytes=max(end, mark.body_start))
    return replace(section, text_end_bytes=trailer.start, torn_bytes=trailer.torn_bytes)


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

"""In which order the files of a capture were copied, by the clocks of its manifests.

Where a clock was set while the files were copied, its times prove nothing, whatever the manifest lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from txn_analysis.kafka.names import LOG, SNAPSHOT, STATE, STATE_TOPIC
from txn_analysis.tables.inputs import CopiedFile, InputSection, Manifest
from txn_analysis.text import utc

BROKER = "broker"
_OF_LOGS = frozenset({LOG, SNAPSHOT})
_CONSOLE = "console"


class Clock(NamedTuple):
    """Whose times these are: one broker's, whichever of its manifests has them, or one collector's."""

    kind: str
    cluster_id: str | None
    broker_id: int | None
    number: int | None = None


class Entry(NamedTuple):
    """What one manifest says of one file."""

    manifest: Manifest
    clock: Clock
    file: CopiedFile


@dataclass(frozen=True)
class CopyOrder:
    """Whether the state was copied after every log.

    Attributes:
        is_proven: it was.
        disproof: that it was not, in words; None where nothing says so.
        doubts: why it is not proven, in words.
    """

    is_proven: bool = False
    disproof: str | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class OrderOfCopies:
    """The times that manifests give of the files of one capture.

    Attributes:
        manifests: all of them.
        sections: all of the evidence.
        max_clock_skew_ms: by how much a clock may step, and two brokers' clocks may differ.
    """

    manifests: Sequence[Manifest]
    sections: Collection[InputSection]
    max_clock_skew_ms: int

    @cached_property
    def order(self) -> CopyOrder:
        """Order: the state was copied last where `began_ms` of each of its files - skew is later than `ended_ms` of
        every log, by one clock; another order disproves it. Where the wall clock falls, or drifts from the monotonic
        one by more than the skew, no order is proven. A collector's clock is never compared with a broker's.
        """
        logs = {s.input_id: s for s in self.of_capture if s.kind in _OF_LOGS and s.topic != STATE_TOPIC}
        states = {s.input_id: s for s in self.of_capture if s.kind == STATE or s.kind.startswith(_CONSOLE)}
        if not self.manifests or not states:
            return CopyOrder()
        both = logs.keys() & states.keys()  # one dump of both: its times are of neither alone
        of_logs, of_states = ([e for i in inputs for e in self.entries.get(i, ())] for inputs in (logs, states))
        disproof = self._disproof(*([e for e in of if e.file.input_id not in both] for of in (of_logs, of_states)))
        doubts = [*self._undated([*logs.values(), *states.values()])]
        clocks = {e.clock for e in (*of_logs, *of_states)}
        if len(clocks) > 1:
            doubts.append("the logs and the state were copied by several clocks")
        doubts += [why for clock in sorted(clocks, key=repr) if (why := self._stepped_clocks.get(clock))]
        if not doubts and not disproof and self._is_last(of_logs, of_states):
            return CopyOrder(is_proven=True)
        return CopyOrder(disproof=disproof, doubts=tuple(dict.fromkeys(doubts)))

    def _undated(self, sections: Iterable[InputSection]) -> Iterator[str]:
        """Why files are not dated to the letter: one such reason for each kind of them."""
        for section in sections:
            entries = self.entries.get(section.input_id, [])
            if not entries:
                yield f"no manifest names {section.shown_path}"
                return
            for manifest, _, file in entries:
                if not manifest.is_complete:
                    yield f"the copy of {manifest.path} was cut short (is_complete: false)"
                    return
                times = file.sequence, file.began_ms, file.ended_ms, file.began_monotonic_ms
                if None in times:
                    yield f"{manifest.path} does not say in full when {file.path} was read"
                    return

    def _is_last(self, logs: Iterable[Entry], states: Iterable[Entry]) -> bool:
        ended = [e.file.ended_ms for e in logs if e.file.ended_ms is not None]
        began = [e.file.began_ms for e in states if e.file.began_ms is not None]
        return bool(began) and (not ended or min(began) - self.max_clock_skew_ms > max(ended))

    def _disproof(self, logs: Sequence[Entry], states: Sequence[Entry]) -> str | None:
        """Brokers' clocks are compared with each other; of a collector only files of one manifest are.

        It asks less than a proof: entries of a copy that was cut short and those of several brokers count here.
        """
        for clock in sorted({e.clock if e.clock.kind != BROKER else None for e in states}, key=repr):
            of_clock = [
                [
                    e
                    for e in entries
                    if (e.clock == clock if clock else e.clock.kind == BROKER)
                    and e.clock not in self._stepped_clocks
                    and None not in (e.file.began_ms, e.file.ended_ms)
                ]
                for entries in (logs, states)
            ]
            if not all(of_clock) or self._is_last(*of_clock):
                continue
            log = max(of_clock[0], key=lambda e: (e.file.ended_ms or 0, e.file.path))
            state = min(of_clock[1], key=lambda e: (e.file.began_ms or 0, e.file.path))
            return (
                f"{state.file.path} was read from {utc(state.file.began_ms)} on, and {log.file.path} until "
                f"{utc(log.file.ended_ms)}, as {log.manifest.path} says"
            )
        return None

    @cached_property
    def of_capture(self) -> list[InputSection]:
        """The sections of this capture, and of none before it."""
        return [section for section in self.sections if not section.capture_rank]

    @cached_property
    def entries(self) -> dict[str, list[Entry]]:
        """By content, what the manifests say of it."""
        entries: defaultdict[str, list[Entry]] = defaultdict(list)
        for number, manifest in enumerate(self.manifests):
            for file in manifest.files:
                if file.input_id is not None:
                    entries[file.input_id].append(Entry(manifest, clock_of(manifest, number), file))
        return dict(entries)

    def is_steady(self, clock: Clock) -> bool:
        """It kept step while all of its manifests were made, each of a copy that was not cut short."""
        of_clock = (manifest for number, manifest in enumerate(self.manifests) if clock_of(manifest, number) == clock)
        return clock not in self._stepped_clocks and all(manifest.is_complete for manifest in of_clock)

    @cached_property
    def _stepped_clocks(self) -> dict[Clock, str]:
        """The clocks that prove no order, and why."""
        of_clock: defaultdict[Clock, list[Manifest]] = defaultdict(list)
        for number, manifest in enumerate(self.manifests):
            of_clock[clock_of(manifest, number)].append(manifest)
        unsteady = {clock: _why_unsteady(manifests, self.max_clock_skew_ms) for clock, manifests in of_clock.items()}
        return {clock: why for clock, why in unsteady.items() if why is not None}


def clock_of(manifest: Manifest, number: int) -> Clock:
    """A broker has one clock, in whichever of its manifests; each collector, and a broker without an id, its own."""
    is_named = manifest.clock == BROKER and manifest.broker_id is not None
    return Clock(manifest.clock, manifest.cluster_id, manifest.broker_id, None if is_named else number)


def _why_unsteady(manifests: Iterable[Manifest], max_clock_skew_ms: int) -> str | None:
    """Why one clock proves no order: it fell from one file to the next, or drifted from the monotonic one."""
    apart: list[int] = []
    for manifest in manifests:
        files = [file for file in manifest.files if file.sequence is not None]
        ordered = sorted(files, key=lambda file: (file.sequence or 0, file.began_monotonic_ms or 0))
        for times in ([f.began_ms for f in ordered], [f.began_monotonic_ms for f in ordered]):
            known = [ms for ms in times if ms is not None]
            if any(later < earlier for earlier, later in pairwise(known)):
                return f"the clock fell while the files of {manifest.path} were copied"
        for file in manifest.files:
            if file.began_ms is None:
                continue
            if file.ended_ms is not None and file.ended_ms < file.began_ms:
                return f"the clock fell while the files of {manifest.path} were copied"
            if file.began_monotonic_ms is not None:
                apart.append(file.began_ms - file.began_monotonic_ms)
    if apart and max(apart) - min(apart) > max_clock_skew_ms:
        return "the clock was set while the files were copied: it drifts from the monotonic one"
    return None

"""The whole of a capture: triage, the logs, and the coordinator's state last.

The state is begun once the clocks of the cluster's brokers may not differ any more from the moment at which the last
log ended: then no log is newer than the state, and the manifest proves the order (`--state-copied-last`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from txn_analysis.capture.answers import (
    Brokers,
    CaptureError,
    Clock,
    ClusterGoneError,
    Leadership,
    Patience,
    UnavailableError,
)
from txn_analysis.capture.files import CaptureFiles, FileEntry, Manifest, checkpoint, new_folder
from txn_analysis.capture.partition_capture import Captured, PartitionCapture
from txn_analysis.capture.triage import Ends, behind
from txn_analysis.kafka.names import COORDINATORS_FILE, COORDINATORS_FORMAT, STATE_TOPIC
from txn_analysis.kafka.transactions import TopicPartition
from txn_analysis.text import count, listed, size

_SHOWN = 5


@dataclass(frozen=True)
class Wanted:
    """What shall be captured.

    Attributes:
        topics: those alone; empty for all that may be seen.
        is_all: also partitions of which nothing is hidden, from their log start on.
        look_back_bytes: what an earlier end marker may cost in each partition.
        max_clock_skew_ms: by how much clocks of the brokers differ at most.
        give_up_after_ms: how long a broker that does not answer is asked again.
    """

    topics: tuple[str, ...] = ()
    is_all: bool = False
    look_back_bytes: int = 1 << 20
    max_clock_skew_ms: int = 1000
    give_up_after_ms: int = 60_000


@dataclass
class Outcome:
    """What came of a capture.

    Attributes:
        stuck: the partitions whose last stable offset lagged.
        captured: by partition what was fetched.
        failures: why something could not be captured, one line each.
        stored_bytes: of the partitions that were captured, on their largest replica; None where nobody says.
    """

    stuck: list[TopicPartition] = field(default_factory=list)
    captured: list[Captured] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stored_bytes: int | None = None

    @property
    def fetched_bytes(self) -> int:
        """Of record batches, with what was fetched for nothing."""
        return sum(each.fetched_bytes for each in self.captured)

    @property
    def is_complete(self) -> bool:
        """Nothing that was wanted is missing, and every end was reached."""
        return not self.failures and all(each.is_whole for each in self.captured)


def capture(
    brokers: Brokers, folder: Path, wanted: Wanted, clock: Clock, say: Callable[[str], None], made_by: str
) -> Outcome:
    """Capture into a new folder; where nothing is stuck and not all is wanted, nothing is written.

    Args:
        brokers: who are asked.
        folder: where files and manifest go.
        wanted: what shall be captured.
        clock: of this machine.
        say: tells somebody what happens, a line at a time.
        made_by: who makes it, for the manifest.

    Raises:
        CaptureError: nothing can be captured; also an `Interrupted` leaves a manifest that says so.
    """
    run = _Run(brokers, folder, wanted, clock, say, made_by)
    return run.all_of_it()


class _Run:
    def __init__(
        self, brokers: Brokers, folder: Path, wanted: Wanted, clock: Clock, say: Callable[[str], None], made_by: str
    ) -> None:
        self._brokers, self._wanted, self._clock, self._say, self._made_by = brokers, wanted, clock, say, made_by
        self._files = CaptureFiles(folder, clock)
        self._patience = Patience(clock, wanted.give_up_after_ms, say)
        self._partitions = PartitionCapture(brokers, self._files, self._patience, say, wanted.look_back_bytes)
        self._outcome = Outcome()
        self._beside: list[FileEntry] = []

    def all_of_it(self) -> Outcome:
        """Triage, logs, the state."""
        self._began_ms = self._clock.wall_ms()
        self._cluster = self._patience.ask(self._brokers.cluster)
        # The state is looked for first: without the right to read it, nothing else is worth fetching.
        state = self._patience.ask(lambda: self._brokers.leaders([STATE_TOPIC]))
        logs = self._triage()
        if not logs:
            return self._outcome
        new_folder(self._files.folder)
        self._write_manifest(is_complete=False)  # until the end: one that is killed is no whole capture
        try:
            self._all_partitions(logs, [led.place for led in state])
        except ClusterGoneError as error:
            self._outcome.failures.append(str(error))
            self._write_manifest(is_complete=False)
            return self._outcome
        except BaseException:
            self._write_manifest(is_complete=False)  # it names what is there
            raise
        try:
            self._finish()
        except CaptureError as error:  # on a disk without room; what failed before is said as well
            self._outcome.failures.append(str(error))
        return self._outcome

    def _all_partitions(self, logs: Sequence[TopicPartition], state: Sequence[TopicPartition]) -> None:
        for place in logs:
            self._capture(place, is_whole_log=self._wanted.is_all)
        self._clock.wait(self._wanted.max_clock_skew_ms + 1)
        for place in state:
            self._capture(place, is_whole_log=True)
        of_state = [each for each in self._outcome.captured if each.place.topic == STATE_TOPIC]
        state_bytes = size(sum(each.fetched_bytes for each in of_state))
        self._say(f"{STATE_TOPIC}: {state_bytes} in {len(of_state)} of {count(len(state), 'partition')}")

    def _triage(self) -> list[TopicPartition]:
        """The partitions to be captured; of those whose offsets are refused, why."""
        led = self._patience.ask(lambda: self._brokers.leaders(self._wanted.topics or None))
        led = [each for each in led if each.place.topic != STATE_TOPIC]
        ends = self._ends(led)
        stuck = self._outcome.stuck = behind(ends)
        hidden = sum(ends[place].high_watermark - ends[place].last_stable_offset for place in stuck)
        self._say(
            f"{count(len(led), 'partition')} of {count(len({e.place.topic for e in led}), 'topic')}: the last stable"
            f" offset lags in {len(stuck)}" + (f", which hides {count(hidden, 'offset')}" if stuck else "")
        )
        return sorted(ends) if self._wanted.is_all else stuck

    def _ends(self, led: Sequence[Leadership]) -> dict[TopicPartition, Ends]:
        """Both ends of each partition; the last stable one is asked for first, so that only what lags seems to."""
        stable = self._asked(led, is_committed=True)
        high = self._asked([each for each in led if each.place in stable], is_committed=False)
        return {place: Ends(stable[place], high[place]) for place in high}

    def _asked(self, led: Sequence[Leadership], *, is_committed: bool) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = {}
        left = list(led)

        def ask() -> None:
            nonlocal left
            answers = self._brokers.end_offsets(left, is_committed=is_committed)
            offsets.update({place: each for place, each in answers.items() if isinstance(each, int)})
            self._outcome.failures += [str(each) for each in answers.values() if isinstance(each, CaptureError)]
            later = {place: each for place, each in answers.items() if not isinstance(each, int | CaptureError)}
            if later:
                topics = {place.topic for place in later}
                left = [each for each in self._brokers.leaders(topics) if each.place in later]
                raise UnavailableError(str(next(iter(later.values()))))

        try:
            self._patience.ask(ask)
        except CaptureError as error:
            self._outcome.failures.append(str(error))
        return offsets

    def _capture(self, place: TopicPartition, *, is_whole_log: bool) -> None:
        is_described = place.topic != STATE_TOPIC
        try:
            captured = self._partitions.capture(place, is_whole_log=is_whole_log, is_described=is_described)
        except ClusterGoneError:
            raise
        except CaptureError as error:
            self._outcome.failures.append(str(error))
            self._say(f"{place}: failed")
            return
        self._outcome.captured.append(captured)
        if not is_described:
            return
        log_bytes = sum(entry.size_bytes for entry in captured.entries if entry.first_offset is not None)
        opened = count(len(captured.producer_ids), "open transaction")
        moving = "" if captured.is_whole else "; its end moved on all the time, and was not reached"
        self._say(f"{place}: {size(log_bytes)} up to offset {captured.high_watermark}, {opened}{moving}")

    def _finish(self) -> None:
        captured = self._outcome.captured
        write = self._files.write
        if self._cluster.cluster_id is not None:
            self._beside.append(write("meta.properties", f"version=1\ncluster.id={self._cluster.cluster_id}\n"))
        starts = {each.place: each.log_start_offset for each in captured}
        marks = {each.place: each.high_watermark for each in captured}
        self._beside.append(write("log-start-offset-checkpoint", checkpoint(starts)))
        self._beside.append(write("replication-offset-checkpoint", checkpoint(marks)))
        transactions = self._answers_of_coordinators()
        if transactions is not None:
            head = {"format": COORDINATORS_FORMAT, "version": 1, "transactions": transactions}
            self._beside.append(write(COORDINATORS_FILE, json.dumps(head, indent=1) + "\n"))
        stored = self._brokers.stored_bytes([each.place for each in captured])
        self._outcome.stored_bytes = None if stored is None else sum(stored.values())
        self._write_manifest(is_complete=self._outcome.is_complete)

    def _answers_of_coordinators(self) -> list[dict[str, object]] | None:
        """For people alone, who compare: without them the capture is as good."""
        try:
            return self._patience.ask(self._brokers.transactions)
        except CaptureError as error:
            self._say(f"the coordinators' own answers are left out: {error}")
            return None

    def _write_manifest(self, *, is_complete: bool) -> None:
        files = [entry for each in self._outcome.captured for entry in each.entries]
        manifest = Manifest(
            made_by=self._made_by,
            cluster_id=self._cluster.cluster_id,
            began_ms=self._began_ms,
            ended_ms=self._clock.wall_ms(),
            is_complete=is_complete,
            files=[*files, *self._beside],
        )
        self._files.write_manifest(manifest.to_json())


def summary(outcome: Outcome, folder: Path) -> str:
    """What was captured and what it cost, for people; with the command that comes next."""
    fetched, stored = outcome.fetched_bytes, outcome.stored_bytes
    of_stored = "" if not stored else f" of {size(stored)} stored, {100 * fetched / stored:.2g}%"
    topics = Counter(each.place.topic for each in outcome.captured)
    shown = listed([f"{topic} ({count(number, 'partition')})" for topic, number in topics.items()], _SHOWN)
    lines = [f"fetched {size(fetched)}{of_stored}: {shown}"]
    if not outcome.is_complete:
        lines.append("INCOMPLETE: the manifest says so, and proves nothing")
    return "\n".join([*lines, f"next: txn-analysis audit {folder}"]) + "\n"

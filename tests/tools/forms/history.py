"""Random logs of one partition for hypothesis: a list of small steps, played by a deterministic writer.

The steps are independent of each other (a producer is an index, times are differences), so that taking one away leaves
a valid history: failures shrink to the few steps that matter.
"""

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from tests.tools.forms.model import SEQUENCE_RANGE, Batch, History, Segment, batch_bytes

FIRST_TIME_MS = 1_795_230_000_000
FIRST_PRODUCER_ID = 1000
MAX_EPOCH = 32767
HOUR_MS = 3_600_000
DATA = ("data", "data", "data", "empty_data", "idempotent", "plain")
MARKERS = ("commit", "commit", "abort", "empty_control", "other_control")
CHANGES = ("bump_epoch", "coordinator_moves", "leader_moves", "roll")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Step:
    """One thing that happens; numbers that its kind has no use for are ignored."""

    kind: str
    producer: int
    records: int = 1
    missing: int = 0
    epoch_bump: int = 0
    wait_ms: int = 0
    client_clock_ms: int | None = 0


@dataclass
class Producer:
    """What a producer keeps between its steps."""

    producer_id: int
    epoch: int
    next_sequence: int
    coordinator_epoch: int = 0
    is_open: bool = False

    def take_sequence(self, count: int) -> int:
        """Base sequence of its next batch."""
        base = self.next_sequence
        self.next_sequence = (base + count) % SEQUENCE_RANGE
        return base

    def bump(self, by: int) -> int:
        """Change its epoch, within what the field holds; sequences begin again at 0."""
        bumped = min(max(self.epoch + by, 0), MAX_EPOCH)
        if bumped != self.epoch:
            self.epoch, self.next_sequence = bumped, 0
        return self.epoch


@dataclass
class Writer:
    """Plays steps into segments."""

    producers: tuple[Producer, ...]
    next_offset: int
    segment_offset: int
    timestamp_type: str
    now_ms: int = FIRST_TIME_MS
    leader_epoch: int = 0
    segments: list[Segment] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)

    def play(self, step: Step) -> None:
        """Let one step happen."""
        self.now_ms += step.wait_ms
        producer = self.producers[step.producer % len(self.producers)]
        if step.kind in DATA:
            self.write_data(step, producer)
        elif step.kind in MARKERS:
            self.write_control(step, producer)
        elif step.kind == "bump_epoch":
            producer.bump(1)
        elif step.kind == "coordinator_moves":
            producer.coordinator_epoch += 1
        elif step.kind == "leader_moves":
            self.leader_epoch += 1
        elif step.kind == "roll":
            self.roll()

    def write_data(self, step: Step, producer: Producer) -> None:
        """Data of a transaction, of an idempotent producer without one, or of no producer at all."""
        count = 0 if step.kind == "empty_data" else step.records
        span = step.records + step.missing
        is_plain = step.kind == "plain"
        # Brokers refuse data outside the transaction while one is open.
        is_transactional = not is_plain and (step.kind != "idempotent" or producer.is_open)
        producer.is_open |= is_transactional
        self.append(
            Batch(
                self.next_offset,
                self.next_offset + span - 1,
                count,
                None if is_plain else producer.producer_id,
                None if is_plain else producer.epoch,
                None if is_plain else producer.take_sequence(span),
                is_transactional,
                size_bytes=batch_bytes([(None, 100)] * count),
                codec=CODECS[step.records % len(CODECS)],
            ),
            step.client_clock_ms,
        )

    def write_control(self, step: Step, producer: Producer) -> None:
        """An end marker, one that compaction emptied, or a control batch that is no end marker."""
        offset = self.next_offset
        if step.kind == "other_control":
            self.append(Batch(offset, offset, 1, is_control=True, marker="LEADER_CHANGE", size_bytes=93), 0)
            return
        is_empty = step.kind == "empty_control"
        epoch = min(producer.epoch + 1, MAX_EPOCH) if is_empty else producer.bump(step.epoch_bump)
        producer.is_open &= is_empty
        marker = Batch(offset, offset, 1, producer.producer_id, epoch, is_transactional=True, is_control=True)
        if is_empty:
            marker = replace(marker, record_count=0, size_bytes=batch_bytes([]))
        else:
            marker = replace(marker, marker=step.kind.upper(), coordinator_epoch=producer.coordinator_epoch)
        self.append(marker, 0)

    def append(self, batch: Batch, client_clock_ms: int | None) -> None:
        """Add a batch; a client's clock that is None sends no time."""
        is_broker_time = self.timestamp_type == "LogAppendTime"
        client_ms = None if client_clock_ms is None else self.now_ms + client_clock_ms
        self.batches.append(
            replace(
                batch,
                max_timestamp_ms=self.now_ms if is_broker_time else client_ms,
                timestamp_type=self.timestamp_type,
                leader_epoch=self.leader_epoch,
                crc=(batch.base_offset * 2_654_435_761) % (1 << 32),
            )
        )
        self.next_offset = batch.last_offset + 1

    def roll(self) -> None:
        """Begin a new segment; one without batches is not rolled."""
        if self.batches:
            self.close()

    def close(self) -> None:
        """Write the segment down, even if it is empty, as an active one may be."""
        self.segments.append(Segment(self.segment_offset, tuple(self.batches)))
        self.segment_offset, self.batches = self.next_offset, []


def play(
    steps: list[Step], producers: tuple[Producer, ...], *, first_offset: int = 0, timestamp_type: str = "CreateTime"
) -> History:
    """The log that the steps leave. The producers are used up."""
    writer = Writer(producers, first_offset, first_offset, timestamp_type)
    for step in steps:
        writer.play(step)
    writer.close()
    return History("random-topic", 0, tuple(writer.segments))


@st.composite
def steps(draw: st.DrawFn, producers: int = 4) -> Step:
    """One step; the plainest kinds and numbers come first, to shrink towards them."""
    return Step(
        kind=draw(st.sampled_from(DATA + MARKERS + CHANGES)),
        producer=draw(st.integers(0, producers - 1)),
        records=draw(st.integers(1, 6)),
        missing=draw(st.sampled_from((0, 0, 0, 1, 40, 100_000))),
        epoch_bump=draw(st.sampled_from((0, 0, 1, 1, 2, -1))),
        wait_ms=draw(st.sampled_from((0, 1, 17, 60_000, HOUR_MS))),
        client_clock_ms=draw(st.sampled_from((0, 0, -3, -HOUR_MS, HOUR_MS, -FIRST_TIME_MS, None))),
    )


@st.composite
def new_producers(draw: st.DrawFn, count: int) -> tuple[Producer, ...]:
    """Producers that may begin near the end of their epochs or sequences."""
    epochs = st.sampled_from((0, 0, 14, MAX_EPOCH - 1))
    sequences = st.sampled_from((0, 0, SEQUENCE_RANGE - 3))
    return tuple(Producer(FIRST_PRODUCER_ID + index, draw(epochs), draw(sequences)) for index in range(count))


@st.composite
def histories(draw: st.DrawFn, *, max_steps: int = 40, max_producers: int = 4) -> History:
    """One partition's log, whole from its first segment to its end, without holes between batches."""
    producers = draw(new_producers(draw(st.integers(1, max_producers))))
    return play(
        draw(st.lists(steps(len(producers)), max_size=max_steps)),
        producers,
        first_offset=draw(st.sampled_from((0, 0, 1, 5_000_000_000))),
        timestamp_type=draw(st.sampled_from(("CreateTime", "CreateTime", "LogAppendTime"))),
    )

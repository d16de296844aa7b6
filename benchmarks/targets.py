"""The targets: ratios of figures that one bench on one machine gave."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.bench import GIB, SIZES
from benchmarks.steps import BATCH_BYTES, Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SMALL, _LARGE = SIZES
_SMALL_BATCH, _LARGE_BATCH = BATCH_BYTES


@dataclass(frozen=True)
class Measured:
    """One ratio, and the figures that it is of, in words."""

    ratio: float
    words: str


class NotMeasurableError(Exception):
    """The figures do not allow a ratio."""


@dataclass(frozen=True)
class Target:
    """One line of the table.

    Attributes:
        what: the question.
        limit: the largest ratio that meets the target.
        needs: the steps whose figures it takes.
        measure: the ratio, from the figures.
    """

    what: str
    limit: float
    needs: tuple[str, ...]
    measure: Callable[[Figures], Measured]

    def line(self, figures: Figures, failures: Mapping[str, str]) -> tuple[str, str, str, str]:
        """What, target, measured and ratio, as words; `not available` with the reason where a step failed."""
        limit = f"≤ {_number(self.limit)} x"
        for step in self.needs:
            if step in failures:
                return self.what, limit, f"not available: {failures[step]}", ""
        try:
            found = self.measure(figures)
        except NotMeasurableError as error:
            return self.what, limit, f"not available: {error}", ""
        missed = "" if found.ratio <= self.limit else f", missed by {found.ratio / self.limit - 1:.0%}"
        return self.what, limit, found.words, f"{_number(found.ratio)} x{missed}"


def added(figures: Figures, name: str, per: str, unit: float) -> float:
    """Seconds for each added unit: what both sizes cost alike drops out.

    Args:
        figures: all of them.
        name: of the seconds, without size and unit.
        per: what is counted, with `{}` for the size.
        unit: so much of it is one.

    Raises:
        NotMeasurableError: the larger input took no longer.
    """
    more = figures[per.format(_LARGE)] - figures[per.format(_SMALL)]
    longer_s = figures[f"{name}_{_LARGE}_s"] - figures[f"{name}_{_SMALL}_s"]
    if longer_s <= 0:
        raise NotMeasurableError(f"{name}: the large input took no longer than the small one; give larger sizes")
    return longer_s / more * unit


def _per_gib(figures: Figures, name: str, text: str = "{}_text_bytes") -> float:
    return added(figures, name, text, GIB)


def against(mine: float, other: float, unit: str) -> Measured:
    """The ratio of two figures, in words with their unit."""
    return Measured(mine / other, f"{_number(mine)} {unit} against {_number(other)}")


def _against_duckdb(name: str, text: str, figures: Figures) -> Measured:
    return against(_per_gib(figures, name, text), _per_gib(figures, "duckdb_keep"), "s per added GiB")


def _deep(figures: Figures) -> Measured:
    return against(_per_gib(figures, "deep", "deep_{}_text_bytes"), _per_gib(figures, "full"), "s per added GiB")


def _fixed(figures: Figures) -> Measured:
    return against(figures["tiny_s"], figures["bare_session_s"], "s")


def _log_dir_seconds(figures: Figures) -> Measured:
    mine = added(figures, f"log_dir_{_SMALL_BATCH}", f"log_dir_{_SMALL_BATCH}_{{}}_batches", 1e6)
    theirs = figures["kafka_dump_log_s"] / figures["kafka_dump_log_batches"] * 1e6
    return against(mine, theirs, "s per million batches")


def _log_dir_bytes(figures: Figures) -> Measured:
    name = f"log_dir_{_LARGE_BATCH}"
    read, held = (
        (figures[f"{name}_{_LARGE}_{what}"] - figures[f"{name}_{_SMALL}_{what}"]) / GIB
        for what in ("read_bytes", "bytes")
    )
    return against(read, held, "GiB read of the added GiB")


def _memory(figures: Figures) -> Measured:
    large, small = (figures[f"full_{size}_memory_bytes"] / GIB for size in (_LARGE, _SMALL))
    return against(large, small, "GiB at the large size")


def _shuffled(figures: Figures) -> Measured:
    return against(figures["full_large_shuffled_bytes"] / 2**20, figures["large_text_bytes"] / 2**20, "MiB")


def _again(figures: Figures) -> Measured:
    again_s, fixed_s, first_s = (figures[name] for name in ("again_s", "tiny_spark_s", "full_large_s"))
    words = f"{_number(again_s)} s, of which {_number(fixed_s)} fixed, against {_number(first_s)}"
    return Measured(max(0.0, again_s - fixed_s) / first_s, words)


def _one_partition(figures: Figures) -> Measured:
    return against(figures["one_partition_s"], figures["full_large_s"], "s")


TARGETS = (
    *[
        Target(
            f"shallow dumps, every batch kept, {engine}, against DuckDB keeping them",
            1.0,
            ("audit", "duckdb"),
            partial(_against_duckdb, name, text),
        )
        for name, text, engine in (
            ("full", "{}_text_bytes", "by Spark's tasks"),
            ("local", "local_{}_text_bytes", "in the command's own process"),
        )
    ],
    Target("deep dumps against shallow ones, for the same bytes", 1.0, ("audit", "deep"), _deep),
    Target("fixed cost: a tiny audit against a bare session and one Delta write", 0.75, ("fixed cost",), _fixed),
    Target(
        f"`log_dir`, {_SMALL_BATCH}-byte batches, against `kafka-dump-log` making shallow text of them",
        0.2,
        ("log_dir, small batches", "kafka-dump-log"),
        _log_dir_seconds,
    ),
    Target(
        f"`log_dir`, {_LARGE_BATCH}-byte batches: bytes read against the log's",
        0.05,
        ("log_dir, large batches",),
        _log_dir_bytes,
    ),
    Target("peak memory, large input against small", 1.2, ("audit",), _memory),
    Target("bytes shuffled against bytes of text", 0.01, ("audit",), _shuffled),
    Target(
        "second audit with 1 % new input, less the fixed cost, against the first",
        0.1,
        ("audit", "second audit", "fixed cost"),
        _again,
    ),
    Target("one partition against the same bytes over 16", 1.2, ("audit", "one partition"), _one_partition),
)


def _number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"

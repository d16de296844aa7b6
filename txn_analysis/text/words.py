"""Numbers as people read them: times in UTC, durations, sizes, plurals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS_PER_S = 1000
_S_PER_MIN = 60
_S_PER_H = 3600
_S_PER_DAY = 86_400
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")
_BYTE_STEP = 1000


@lru_cache(maxsize=1 << 10)
def utc(ms: int | None) -> str | None:
    """ISO 8601 in UTC to the millisecond; None stays None, and the bare number where no calendar reaches."""
    if ms is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_utc(time_ms: int | None) -> str:
    """ISO 8601 in UTC to the millisecond, as in the facts of a judgement; `unknown` for None."""
    return utc(time_ms) or "unknown"


def duration(duration_ms: int | None) -> str:
    """The two largest units, such as `3 h 0 min`; rounded down, so that nothing looks later than it is."""
    if duration_ms is None:
        return "unknown"
    seconds = abs(duration_ms) // _MS_PER_S
    sign = "-" if duration_ms < 0 and seconds else ""
    if seconds < _S_PER_MIN:
        return f"{sign}{seconds} s"
    if seconds < _S_PER_H:
        return f"{sign}{seconds // _S_PER_MIN} min {seconds % _S_PER_MIN} s"
    if seconds < _S_PER_DAY:
        return f"{sign}{seconds // _S_PER_H} h {seconds % _S_PER_H // _S_PER_MIN} min"
    return f"{sign}{seconds // _S_PER_DAY} d {seconds % _S_PER_DAY // _S_PER_H} h"


def size(size_bytes: int | None) -> str:
    """A size with one decimal, in steps of 1000."""
    if size_bytes is None:
        return "unknown size"
    value, unit = float(size_bytes), 0
    while value >= _BYTE_STEP and unit < len(_BYTE_UNITS) - 1:
        value, unit = value / _BYTE_STEP, unit + 1
    return f"{size_bytes} B" if unit == 0 else f"{value:.1f} {_BYTE_UNITS[unit]}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(items: list[str], at_most: int) -> str:
    """Comma-separated, and how many more there are."""
    more = len(items) - at_most
    return ", ".join(items[:at_most]) + (f" and {more} more" if more > 0 else "")


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as people list them: `0 to 3, 7, 9 to 11`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join(" to ".join(map(str, run)) for run in runs)

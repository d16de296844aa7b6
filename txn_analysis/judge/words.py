"""Moments as the sentences of rules, causes and warnings spell them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(ms: int | None) -> str | None:
    """ISO 8601 in UTC to the millisecond; None stays None, and the bare number where no calendar reaches."""
    if ms is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms since 1970"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""Three-valued logic: True, False, and None for what the evidence cannot tell. It stands here and nowhere else.

A rule fires on True alone, so that what is unknown accuses nobody. Where something must be ruled out by proof instead,
the fact says so with `possible`.
"""

from __future__ import annotations

Truth = bool | None

UNBOUNDED_MS = 2**63 - 1
"""A moment of which nothing says how late it was."""


def no(condition: Truth) -> Truth:
    """The opposite; unknown stays unknown. Python's `not None` is True, which would accuse."""
    return None if condition is None else not condition


def both(*conditions: Truth) -> Truth:
    """All of them: False as soon as one is, however little is known of the others."""
    if False in conditions:
        return False
    return None if None in conditions else True


def either(*conditions: Truth) -> Truth:
    """At least one of them: True as soon as one is, however little is known of the others."""
    if True in conditions:
        return True
    return None if None in conditions else False


def possible(condition: Truth) -> bool:
    """The condition with None as True, for what only proof can rule out."""
    return condition is not False


def more(left: int | None, right: int | None) -> Truth:
    """Whether one number is above another; None where either is unknown."""
    return None if left is None or right is None else left > right


def plus(left: int | None, right: int | None) -> int | None:
    """The sum; None where either is unknown."""
    return None if left is None or right is None else left + right


def minus(left: int | None, right: int | None) -> int | None:
    """The difference; None where either is unknown."""
    return None if left is None or right is None else left - right


def is_before(earlier_ms: int | None, later_ms: int | None, allowance_ms: int = 0) -> bool:
    """Proven to be before, although the clocks may differ by the allowance."""
    return earlier_ms is not None and later_ms is not None and earlier_ms + allowance_ms < later_ms


def latest(*moments_ms: int | None) -> int | None:
    """The newest of the known moments; None where none is known."""
    known = [ms for ms in moments_ms if ms is not None]
    return max(known) if known else None


def later_of(one_ms: int | None, other_ms: int | None) -> int | None:
    """The newer of two moments, as `latest` says it; asked of every record."""
    if one_ms is None or other_ms is None:
        return other_ms if one_ms is None else one_ms
    return max(one_ms, other_ms)

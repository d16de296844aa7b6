"""Topics and partitions by their names: whether somebody has seen what they name, and which an audit is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import product

from txn_analysis.errors import ConfigError
from txn_analysis.settings import Settings
from txn_analysis.tables.inputs import Asked, AskedPartition
from txn_analysis.text import clip, escape, listed, ranges

NEEDS_TOPIC = "--partition needs --topic: say of which topic"
_MOST_NAMED = 8
_NAME_WIDTH = 80
_NOTHING = "''"  # as a shell would have it


def asked_for(settings: Settings) -> Asked | None:
    """The partitions that a capture is asked for, sorted; None where it is asked for all.

    Raises:
        ConfigError: a partition without its topic.
    """
    if settings.partition and not settings.topic:
        raise ConfigError(NEEDS_TOPIC)
    if not settings.topic:
        return None
    return tuple(AskedPartition(*place) for place in sorted({*product(settings.topic, settings.partition or [None])}))


def check_places(
    topics: Collection[str], partitions: Collection[int], seen: Collection[tuple[str, int]], who: str = "this run"
) -> None:
    """Refuse the name of a topic, or of a partition of some topics, that nobody has seen.

    Args:
        topics: by name.
        partitions: each of at least one of these topics.
        seen: what there is.
        who: has seen it.

    Raises:
        ConfigError: it names the option, what it names, and what there is.
    """
    seen_topics = sorted({topic for topic, _ in seen})
    for topic in topics:
        if topic not in seen_topics:
            close = difflib.get_close_matches(topic, seen_topics, n=1)
            there = f"did you mean {escape(close[0])}?" if close else f"it saw {_names(seen_topics)}"
            raise ConfigError(f"--topic {clip(topic, _NAME_WIDTH) or _NOTHING}: {who} saw no such topic; {there}")
    for number in partitions:
        if not any((topic, number) in seen for topic in topics):
            present = sorted(partition for topic, partition in seen if topic in topics)
            named = _names(sorted(topics))
            raise ConfigError(f"--partition {number}: {who} saw no such partition; of {named} it saw {ranges(present)}")


def _names(names: list[str]) -> str:
    return listed([clip(name, _NAME_WIDTH) for name in names], _MOST_NAMED) or "none"

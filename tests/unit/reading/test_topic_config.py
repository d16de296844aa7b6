"""Topic configurations in every form in which the tool prints them."""

from pathlib import Path

import pytest

from tests.tools.cases import cases
from txn_analysis.errors import ConfigError
from txn_analysis.kafka.names import TopicConfig
from txn_analysis.reading.topic_config import read_topic_configs, topic_configs

COMPACTED = TopicConfig(frozenset({"compact", "delete"}), 3_600_000, None)


@cases(
    "text",
    {
        "2.5-and-newer": "All configs for topic orders are:\n"
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact}\n"
        "  retention.ms=3600000 sensitive=false synonyms={}\n"
        "  retention.bytes=-1 sensitive=false synonyms={DEFAULT_CONFIG:log.retention.bytes=-1}\n",
        "on-one-line": (
            "Configs for topic 'orders' are cleanup.policy=compact,delete,retention.ms=3600000,retention.bytes=-1\n"
        ),
    },
)
def test_both_forms(text: str) -> None:
    assert topic_configs(text) == {"orders": COMPACTED}


@cases(
    "lines expected",
    {
        "its-own-local-retention": (
            ("remote.storage.enable=true", "retention.ms=3600000", "local.retention.ms=1000"),
            TopicConfig(None, 3_600_000, None, True, 1000, None),
        ),
        "that-of-the-whole-log": (
            ("remote.storage.enable=true", "retention.ms=3600000", "local.retention.ms=-2"),
            TopicConfig(None, 3_600_000, None, True, 3_600_000, None),
        ),
        "nothing-is-copied-any-more": (
            ("remote.storage.enable=true", "remote.log.copy.disable=true", "local.retention.ms=1000"),
            TopicConfig(None, None, None, False, None, None),
        ),
        "not-tiered": (("remote.storage.enable=false",), TopicConfig(None, None, None, False)),
    },
)
def test_what_is_kept_of_a_tiered_topic(lines: tuple[str, ...], expected: TopicConfig) -> None:
    settings = "".join(f"  {line} sensitive=false synonyms={{}}\n" for line in lines)
    assert topic_configs(f"All configs for topic orders are:\n{settings}") == {"orders": expected}


def test_what_is_not_stated_is_not_guessed() -> None:
    assert topic_configs("Dynamic configs for topic orders are:\n") == {"orders": TopicConfig()}


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("nothing of the kind\n")
    with pytest.raises(ConfigError, match="no topic in it"):
        read_topic_configs(str(file))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_topic_configs(str(tmp_path / "missing"))

"""Topic configurations as `kafka-configs.sh --describe --entity-type topics` prints them, with or without `--all`."""

from __future__ import annotations

import re
from pathlib import Path

from txn_analysis.errors import ConfigError
from txn_analysis.kafka.names import TOPIC_CONFIGS, TopicConfig

_TOPIC = r"[a-zA-Z0-9._-]{1,249}"
# 2.5 and newer: a heading, then one line for each setting.
_HEADING = re.compile(rf"(?:Dynamic|All) configs for topic '?({_TOPIC})'? are:")
# Older: all on one line, for all topics or for one.
_ONE_LINE = re.compile(rf"Configs for topic '?({_TOPIC})'? are ?(.*)")
_SETTING = re.compile(r"\s+([a-z.]+)=(.*?) sensitive=(?:true|false) synonyms=\{.*\}")
_PAIR = re.compile(r"(cleanup\.policy|retention\.ms|retention\.bytes)=((?:compact|delete|,)+|-?[0-9]{1,19})")
_SAVE = f"save what `{TOPIC_CONFIGS}` prints"
_AS_THE_WHOLE_LOG = "-2"
_WHOLE = re.compile(r"-?[0-9]{1,19}")


def read_topic_configs(path: str) -> dict[str, TopicConfig]:
    """The configurations in a file, by topic.

    Raises:
        ConfigError: it cannot be read, or holds no line of that tool.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"--topic-config {path}: cannot be read: {why}; check the path") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"--topic-config {path}: cannot be read as text; {_SAVE}") from error
    configs = topic_configs(text)
    if not configs:
        raise ConfigError(f"--topic-config {path}: no topic in it; {_SAVE}")
    return configs


def topic_configs(text: str) -> dict[str, TopicConfig]:
    """The configurations in the tool's text, by topic; other lines are passed over."""
    settings: dict[str, dict[str, str]] = {}
    topic = None
    for line in text.split("\n"):
        heading, one_line = _HEADING.match(line), _ONE_LINE.match(line)
        setting = _SETTING.match(line)
        if heading:
            topic = heading[1]
            settings.setdefault(topic, {})
        elif one_line:
            topic = None
            settings.setdefault(one_line[1], {}).update(_PAIR.findall(one_line[2]))
        elif setting and topic is not None:
            settings[topic][setting[1]] = setting[2]
    return {name: _config(values) for name, values in settings.items()}


def _config(values: dict[str, str]) -> TopicConfig:
    policies, remote = values.get("cleanup.policy"), values.get("remote.storage.enable")
    is_tiered = None if remote is None else remote == "true" and values.get("remote.log.copy.disable") != "true"
    return TopicConfig(
        cleanup_policies=None if policies is None else frozenset(p for p in re.split(r"[\[\], ]+", policies) if p),
        retention_ms=_limit(values.get("retention.ms")),
        retention_bytes=_limit(values.get("retention.bytes")),
        is_tiered=is_tiered,
        local_retention_ms=_local_limit(values, "retention.ms") if is_tiered else None,
        local_retention_bytes=_local_limit(values, "retention.bytes") if is_tiered else None,
    )


def _local_limit(values: dict[str, str], name: str) -> int | None:
    """Of the local segments of a tiered topic; -2 stands for the limit of the whole log (`LogConfig`)."""
    of_topic = values.get(f"local.{name}", _AS_THE_WHOLE_LOG)
    return _limit(values.get(name) if of_topic == _AS_THE_WHOLE_LOG else of_topic)


def _limit(value: str | None) -> int | None:
    known = None if value is None or not _WHOLE.fullmatch(value) else int(value)
    return None if known is None or known < 0 else known

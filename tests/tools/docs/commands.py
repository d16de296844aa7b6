"""The commands that stand in README.md and docs/, and what the command line knows of them."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Any

from tests.tools.repository import ROOT
from txn_analysis.cli.main import app

_FENCED = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_PRINTED = re.compile(r"(?:txn-analysis (?=[a-z])|kafka-[a-z-]+\.sh (?=[a-z-]))[^`\n]*")
_INLINE = re.compile(r"`([^`\n]+)`")

# What `--help` of Kafka 4.2's own tools lists, as far as the documents use these tools.
KAFKA_OPTIONS = {
    "kafka-dump-log.sh": {
        "--files", "--transaction-log-decoder", "--deep-iteration", "--print-data-log", "--offsets-decoder",
    },
    "kafka-transactions.sh": {
        "--bootstrap-server", "--broker-id", "--transactional-id", "--topic", "--partition", "--start-offset",
        "--max-transaction-timeout", "--producer-id", "--producer-epoch", "--coordinator-epoch", "--transactionalId",
    },
    "kafka-producer-perf-test.sh": {  # of 3.9
        "--topic", "--num-records", "--record-size", "--throughput", "--producer-props", "--transaction-duration-ms",
        "--transactional-id",
    },
    "kafka-console-consumer.sh": {
        "--bootstrap-server", "--topic", "--partition", "--offset", "--timeout-ms", "--formatter",
    },
    "kafka-topics.sh": {"--bootstrap-server", "--describe", "--topic"},
    "kafka-configs.sh": {"--bootstrap-server", "--describe", "--all", "--entity-type", "--entity-name"},
    "kafka-log-dirs.sh": {"--bootstrap-server", "--describe", "--topic-list"},
    "kafka-leader-election.sh": {"--bootstrap-server", "--election-type", "--all-topic-partitions"},
}  # fmt: skip

_BROKERS = "--bootstrap-server"


@dataclass(frozen=True)
class Command:
    """One command of a document: its words, without the shell around it."""

    text: str
    words: tuple[str, ...]

    @property
    def options(self) -> set[str]:
        """Its options, without values."""
        return {
            word.partition("=")[0]
            for word in self.words
            if re.fullmatch(r"-o|--[a-z][a-zA-Z-]*(=.*)?", word, re.DOTALL)
        }


def blocks_of(text: str) -> list[str]:
    """What stands in fenced blocks, those inside of lists too."""
    return [textwrap.dedent(block) for block in _FENCED.findall(text)]


def without_blocks(text: str) -> str:
    """The prose of a page: nothing in a fenced block is a link."""
    return _FENCED.sub("", text)


def inline_code(text: str) -> list[str]:
    """What stands between backticks in prose."""
    return _INLINE.findall(without_blocks(text))


def wrong_with(command: Command, *, is_whole: bool = True) -> str | None:
    """What its program would refuse in it; None where nothing.

    Args:
        command: of a document, or of what the program prints.
        is_whole: it is to be typed as it stands; in prose a tool may be named with an option and no more.
    """
    program, *rest = command.words
    if program in KAFKA_OPTIONS:
        known: set[str] | None = KAFKA_OPTIONS[program]
    elif program.endswith(".py"):
        known = verb_options("audit") if (ROOT / "jobs" / Path(program).name).exists() else None
    else:
        # `txn-analysis VERB --help` speaks of all of them.
        verbs = [word for word in rest if not word.startswith("-") and word != "VERB"]
        known = verb_options(verbs[0]) if verbs else {"--help", "--version", "--verbose"}
    if known is None:
        return f"there is no such verb or job: {command.text}"
    missing = ({_BROKERS} & KAFKA_OPTIONS.get(program, set())) - command.options if is_whole else set()
    wrong = sorted((command.options - known) | missing)
    return f"{', '.join(wrong)}: {command.text}" if wrong else None


def commands_of(text: str) -> Iterator[Command]:
    """The commands in fenced blocks (a backslash continues a line) and between backticks."""
    yield from commands_in_blocks(text)
    for inline in inline_code(text):
        yield from commands_in(inline)


def commands_in_blocks(text: str) -> Iterator[Command]:
    """Those in fenced blocks, which are to be typed as they stand."""
    for line in (line for block in blocks_of(text) for line in block.replace("\\\n", " ").splitlines()):
        yield from commands_in(line)


def printed_in(text: str) -> list[Command]:
    """The commands that a text prints: on lines of their own, between backticks, or to the end of a line."""
    return [command for found in sorted(set(_PRINTED.findall(text))) for command in commands_in(found)]


def commands_in(line: str) -> Iterator[Command]:
    """A line may begin with a time (cron), spark-submit or podman; our command is what follows, to `&&` or a pipe."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # prose with an apostrophe
        return
    for _, part in groupby(words, {"&&", "|"}.__contains__):
        if typed := tuple(dropwhile(lambda word: not _is_program(word), part)):
            yield Command(line, typed)


def _is_program(word: str) -> bool:
    name = word.removeprefix("./")
    return name == "txn-analysis" or bool(re.fullmatch(r"(\S*/)?jobs/\w+\.py", name)) or name in KAFKA_OPTIONS


@cache
def verb_options(verb: str) -> set[str] | None:
    """Every option of a verb, hidden ones too; None where there is no such verb."""
    found = app.commands.get(verb)
    return None if found is None else _names(found)


def _names(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}

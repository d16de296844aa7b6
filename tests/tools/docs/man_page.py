"""The man page, made of the command line itself: what `--help` says of each verb, in man(7).

`python -m tests.tools.docs.man_page` prints it; `make release` puts it beside the wheel.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

from txn_analysis.cli.main import app
from txn_analysis.settings import ENVIRONMENT_PREFIX

_MADE = r".\" Made of what --help says."
_EXAMPLE = re.compile(r"\s*\x08?\s*Examples?:\n")


def man_page() -> str:
    """The whole page."""
    group = app
    verbs = [(name, command, command.make_context(name, [], resilient_parsing=True)) for name, command in _verbs(group)]
    common = set.intersection(*(set(_options(command, context)) for _, command, context in verbs if _is_asked(command)))
    lines = [_MADE, '.TH TXN-ANALYSIS 1 "" "txn-analysis" "User Commands"', ".nh", ".ad l"]
    lines += [".SH NAME", r"txn-analysis \- find hanging Kafka transactions in files copied off the brokers"]
    lines += [".SH SYNOPSIS", _synopsis("VERB", ["[OPTION]..."])]
    lines += [".SH DESCRIPTION", *_prose(group.help), ".SH VERBS"]
    for name, command, context in verbs:
        lines += [
            f".SS {_plain(name)}",
            _synopsis(name, command.collect_usage_pieces(context)),
            ".PP",
            *_prose(command.help),
        ]
        lines += _listed(one for one in _options(command, context) if one not in common)
        lines += _example(command.epilog)
    lines += [".SH OPTIONS OF ALL VERBS THAT READ FILES OR A WAREHOUSE", *_listed(sorted(common))]
    lines += [".SH ENVIRONMENT", ".TP", rf".B {ENVIRONMENT_PREFIX}\fINAME\fR"]
    lines += ["A setting, as its flag gives it; a flag beats it, and it beats the file of --config."]
    lines += [".SH FILES", ".TP", ".I conf/audit.toml", "All settings with their defaults, to be copied."]
    lines += [".SH SEE ALSO", r"The pages in docs/, and txn\-capture \-\-help."]
    return "".join(f"{line}\n" for line in lines)


def _verbs(group: Any) -> Iterator[tuple[str, Any]]:
    yield from group.commands.items()


def _is_asked(command: Any) -> bool:
    """It has the options that verbs share."""
    return any(param.name == "config" for param in command.params)


def _options(command: Any, context: Any) -> list[tuple[str, str]]:
    """Spellings and help of what `--help` shows."""
    records = (param.get_help_record(context) for param in command.get_params(context))
    return [record for record in records if record is not None]


def _synopsis(verb: str, pieces: Iterable[str]) -> str:
    shown = rf"\fI{verb}\fR" if verb.isupper() else rf"\fB{_plain(verb)}\fR"
    return rf"\fBtxn\-analysis\fR {shown} {_plain(' '.join(pieces))}"


def _prose(text: str | None) -> Iterator[str]:
    for index, paragraph in enumerate(inspect.cleandoc(text or "").split("\n\n")):
        if index:
            yield ".PP"
        yield _plain(" ".join(paragraph.split()))


def _listed(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    for names, words in records:
        yield from (".TP", rf"\fB{_plain(names)}\fR", _plain(words or ""))


def _example(epilog: str | None) -> Iterator[str]:
    if epilog:
        lines = _EXAMPLE.sub("", epilog, count=1).splitlines()
        yield from (".PP", "Example:", ".PP", ".nf", ".RS 4")
        yield from (_plain(line.strip()) for line in lines if line.strip())
        yield from (".RE", ".fi")


def _plain(text: str) -> str:
    """Text in which nothing is a request of roff's: no line begins with a dot, and hyphens can be copied."""
    shown = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{shown}" if shown.startswith(".") else shown


if __name__ == "__main__":
    print(man_page(), end="")

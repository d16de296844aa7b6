"""The file of all settings, made of their fields: `audit --print-config`, and conf/audit.toml."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from txn_analysis.settings import ASSERTED, EXIT_CODE, INPUT, RUNNING, Flag, Settings

_HEAD = """\
# Settings of txn-analysis, all at their defaults: copy, uncomment what differs, and pass it with `--config FILE`.
# Each is also a flag (--transaction-max-timeout-ms) and a variable (TXN_ANALYSIS_TRANSACTION_MAX_TIMEOUT_MS), but for
# those of this file alone. Flags beat variables, which beat this file. A name that is not known is an error.
"""
_HERE = "In this file alone"
_WIDTH = 120


def config_file() -> str:
    """Every setting with what it means; commented out, at its default, or with an example where it has none."""
    settings: dict[str, list[str]] = {heading: [] for heading in (INPUT, ASSERTED, EXIT_CODE, RUNNING, _HERE)}
    for name, about in Settings.model_fields.items():
        heading = next((flag.heading for flag in about.metadata if isinstance(flag, Flag)), _HERE)
        settings[heading] += _lines(name, about)
    parts = (
        f"\n# --- {heading} {'-' * (_WIDTH - 7 - len(heading))}\n" + "\n".join(lines)
        for heading, lines in settings.items()
    )
    return _HEAD + "".join(f"{part}\n" for part in parts)


def _lines(name: str, about: FieldInfo) -> Iterator[str]:
    words = str(about.description)
    is_set = about.default not in (None, ())
    sentence = f"{words[:1].upper()}{words[1:]}.{'' if is_set else ' Not set; an example:'}"
    yield from textwrap.wrap(sentence, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    value: Any = about.default if is_set else (about.examples or [None])[0]
    yield f"# {name} = {json.dumps(value)}"

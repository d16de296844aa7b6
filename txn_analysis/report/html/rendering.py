"""How a page is made of a template: it opens offline, runs no script but its own, and fetches nothing.

Everything shown passes `escape.html_text`, also what is ours; the page's own policy (CSP) would stop what came through.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from txn_analysis.report import figures, headline
from txn_analysis.report.upcoming import TITLE, shown
from txn_analysis.text import clip, duration, html_text, iso_utc, size
from txn_analysis.verdict import Verdict

_MOST_SINCE = 50
_MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z")


@cache
def template() -> Template:
    """The page's template, with the style and the script that stand in the page, and their hashes."""
    environment = Environment(
        loader=PackageLoader("txn_analysis.report.html", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(utc=iso_utc, duration=duration, size=size, clip=clip, prose=_prose, breakable=_breakable)
    environment.filters.update(moments=_moments, typed=_typed)
    environment.globals.update(
        warning_subject=figures.warning_subject,
        soonest_warnings=figures.soonest_warnings,
        upcoming=shown,
        upcoming_title=TITLE,
        warnings_left_out=figures.warnings_left_out,
        most_places=headline.MOST_PLACES,
        most_since=_MOST_SINCE,
        verdicts=tuple(reversed(Verdict)),
    )
    for name, file in (("style", "page.css"), ("script", "page.js")):
        path = resources.files("txn_analysis.report.html").joinpath("templates", file)
        text = path.read_text(encoding="utf-8").strip()
        # The name of an inline style or script in the page's policy (CSP 3, `hash-source`).
        hashed = "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        environment.globals |= {name: Markup(text), f"{name}_hash": hashed}  # noqa: S704 our own files
    return environment.get_template("page.html.j2")


def _shown(value: Any) -> Markup:
    """What an expression of a template becomes, unless it is markup of ours already."""
    return value if isinstance(value, Markup) else Markup(html_text(str(value)))  # noqa: S704 escaped here


def _prose(text: str) -> Markup:
    """Words of ours, where what stands between backticks is to be typed."""
    parts = (
        f"<code>{_typed(part)}</code>" if index % 2 else _moments(part) for index, part in enumerate(text.split("`"))
    )
    return Markup("".join(parts))  # noqa: S704 escaped here


def _moments(text: str) -> Markup:
    """A text whose times are not broken at their hyphens."""
    return Markup(_MOMENT.sub(r'<span class="moment">\g<0></span>', html_text(text)))  # noqa: S704 escaped here


def _typed(command: str) -> Markup:
    """What is to be typed; a hyphen in a word of it is no place to go on in the next line."""
    words = (
        f'<span class="typed">{html_text(word)}</span>' if "-" in word else html_text(word)
        for word in command.split(" ")
    )
    return Markup(" ".join(words))  # noqa: S704 escaped here


def _breakable(name: str) -> Markup:
    """A name of ours that may go on in the next line after any underscore."""
    return Markup(html_text(name).replace("_", "_<wbr>"))  # noqa: S704 escaped here

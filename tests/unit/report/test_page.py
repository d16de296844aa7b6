"""The page as text; tests/systems/browser opens it."""

import base64
import hashlib
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tests.tools import report_rows as rows
from txn_analysis.report.build import build_report
from txn_analysis.report.html.page import html_report

HOSTILE = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("<>&\"'`{}%\n\x1b\u202e/=")), max_size=60
)
POLICY = re.compile(r"Content-Security-Policy\" content=\"([^\"]+)\"")


def page_with(name: str) -> str:
    found = rows.finding(transactional_id=name, topic=name, evidence=[name])
    return html_report(
        build_report(rows.run(cluster=name), [rows.input_file(path=name)], [rows.health(topic=name)], [found])
    )


TAGS = re.compile(r"<(?!/?span)[a-z/!][^>]*>")  # a word of a command that has a hyphen is in a span


def tags_of(page: str) -> list[str]:
    return sorted(tag.split()[0].rstrip(">") for tag in TAGS.findall(page))


PLAIN = tags_of(page_with("plain"))


@given(HOSTILE)
def test_no_name_adds_a_tag(name: str) -> None:
    assert tags_of(page_with(name)) == PLAIN


def test_policy_allows_only_the_pages_own_style_and_script() -> None:
    page = page_with("orders")
    found = POLICY.search(page)
    assert found is not None
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in found[1].replace("&#x27;", "'")
    assert found[1].startswith("default-src 'none'")


def test_page_names_no_other_place() -> None:
    assert re.findall(r"(?:https?:)?//[a-z]", page_with("orders")) == []


class Frame(HTMLParser):
    """What a notebook reads: every tag, and the page of the frame."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@given(HOSTILE)
def test_a_notebook_shows_the_page_in_a_frame_of_its_own(name: str) -> None:
    report = build_report(rows.run(cluster=name), [], [rows.health()], [rows.finding(transactional_id=name)])
    ((tag, attributes),) = Frame(report.with_options(" --warehouse /data")._repr_html_()).tags
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts")
    page = attributes["srcdoc"] or ""
    assert page.startswith("<!doctype html>")
    assert page.endswith("</html>")
    assert "--warehouse /data" in re.sub(r"</?span[^>]*>", "", page)

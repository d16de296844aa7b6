import csv
import io
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txn_analysis.report.formats import csv_table
from txn_analysis.text import (
    clip,
    escape,
    formula_guard,
    html_text,
    shell_word,
)

HOSTILE = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\n\r\t\x00\x1b\x85\u202e\u2028\u200f'\"\\$`#;&|"))
)
IDS = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\x00"),
        st.sampled_from("\n\r\t\x1b\x85\u202e'\"\\$`#;&|a0 "),
    ),
    max_size=40,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("billing-worker-17", "billing-worker-17"),
        ("a\nb", r"a\nb"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("ab\u202ecd", r"ab\u202ecd"),
        ("\u2028", r"\u2028"),
        ("\x9b2J", r"\x9b2J"),
        ("Größe 漢字", "Größe 漢字"),
        ("\U000e0001", r"\U000e0001"),
        ("\ud800", r"\ud800"),
    ],
)
def test_escape_shows_what_does_not_print(raw: str, shown: str) -> None:
    assert escape(raw) == shown


@given(HOSTILE)
def test_escaped_text_prints_and_stays(text: str) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert escape(shown) == shown


@given(HOSTILE, st.integers(min_value=3, max_value=50))
def test_clipped_text_fits(text: str, width: int) -> None:
    assert len(clip(text, width)) <= width


@given(HOSTILE)
def test_shell_word_is_one_printable_line(text: str) -> None:
    assert shell_word(text).isprintable()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=5, deadline=None)
@given(st.lists(IDS, min_size=20, max_size=60))
def test_shell_word_is_the_exact_text_for_a_shell(ids: list[str]) -> None:
    script = "printf '%s\\0' " + " ".join(map(shell_word, ids))
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, env={"LC_ALL": "C.UTF-8"})
    assert done.stdout.decode().split("\0")[:-1] == ids


def test_an_id_with_a_nul_is_no_other_id_for_a_shell() -> None:
    done = subprocess.run(["sh", "-c", "printf %s " + shell_word("billing\0")], check=True, capture_output=True)
    assert done.stdout == b"billing\xff"


@given(st.lists(HOSTILE, min_size=1, max_size=4))
def test_csv_cells_are_read_back_as_they_are_shown(texts: list[str]) -> None:
    _, cells = csv.reader(io.StringIO(csv_table(map(str, range(len(texts))), [texts]), newline=""), strict=True)
    assert [cell.removeprefix("'") for cell in cells] == [escape(text).removeprefix("'") for text in texts]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\uff1d"])
def test_no_csv_cell_is_a_formula(start: str) -> None:
    assert formula_guard(f"{start}cmd|' /C calc'!A0").startswith("'")


@pytest.mark.parametrize("start", ["\t", "\r", "\n"])
def test_white_space_that_hides_a_formula_is_shown(start: str) -> None:
    assert formula_guard(f"{start}=1") == f"{escape(start)}=1"


class Page(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.title: str | None = None
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.title = dict(attrs)["title"]

    def handle_data(self, data: str) -> None:
        self.text += data


@given(HOSTILE)
def test_html_holds_the_text_and_no_markup_of_its_own(text: str) -> None:
    for quote in "\"'":
        page = Page()
        page.feed(f"<p title={quote}{html_text(text)}{quote}>{html_text(text)}</p>")
        page.close()
        assert (page.tags, page.title, page.text) == (["p"], escape(text), escape(text))


def test_html_has_no_script() -> None:
    assert html_text("<script>alert('1&2')</script>") == "&lt;script&gt;alert(&#x27;1&amp;2&#x27;)&lt;/script&gt;"

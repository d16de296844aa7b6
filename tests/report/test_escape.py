from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txn_analysis.report.escape import clip, escape, shell_word

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

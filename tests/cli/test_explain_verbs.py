"""The command lines of `explain` and `ended`: what is refused before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Done


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "--partition", "0"), "--partition needs --topic"),
        (("ended", "--partition", "0"), "--partition needs --topic"),
        (("ended", "--cause", "bad luck"), "the causes of an end are client_commit"),
        (("ended", "--transactional-id-pattern", "("), "not a regular expression"),
    ],
)
def test_what_cannot_be_answered_is_refused(command: Callable[..., Done], words: tuple[str, ...], message: str) -> None:
    done = command(*words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err

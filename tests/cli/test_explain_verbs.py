"""The command lines of `explain`, `ended` and `who`: what is refused before anything starts."""

import json
from collections.abc import Callable

import pytest

from tests.cli.conftest import Done


@pytest.mark.parametrize(
    ("words", "title"),
    [
        pytest.param((), None, id="a-list-of-explanations"),
        pytest.param(("--topic", "a", "--partition", "0", "--offset", "7"), "OffsetAnswer", id="one-offset"),
    ],
)
def test_the_schema_of_what_is_printed_as_json(
    command: Callable[..., Done], words: tuple[str, ...], title: str | None
) -> None:
    done = command("explain", *words, "--schema")
    schema = json.loads(done.out)
    assert (done.code, schema.get("title")) == (0, title)
    assert schema["type"] == ("array" if title is None else "object")


def test_the_schema_of_who_it_is(command: Callable[..., Done]) -> None:
    done = command("who", "--schema")
    assert (done.code, json.loads(done.out)["title"]) == (0, "OwnerAnswer")

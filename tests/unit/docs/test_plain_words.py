"""The counter of long sentences counts what a reader reads."""

from tests.tools.docs.plain_words import avoided_words, sentences

PAGE = """# A heading

The first one, with `code of many words` and [a link](page.md). The second
goes on (to 1.0).

* **An item, and its label.** Short. Its end comes here.

| a label | the words of a cell. And one more of it |
|---|---|

```
no sentence
```
"""


def test_sentences_of_paragraphs_items_and_cells_are_counted() -> None:
    assert [*sentences(PAGE)] == [
        "The first one, with CODE and a link.",
        "The second goes on (to 1.0).",
        "An item, and its label.",
        "the words of a cell.",
        "And one more of it",
    ]


def test_the_words_to_avoid_are_those_of_one_line() -> None:
    assert avoided_words("Some `code`.\n`make check` refuses `at hand` and `as far as`.\n") == ["at hand", "as far as"]

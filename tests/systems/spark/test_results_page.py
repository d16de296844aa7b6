"""The page of measurements has several writers: each replaces its own sections, and leaves those of the others."""

from benchmarks.results import merged

PAGE = """# What an audit costs

Written on Monday.

## Where the time goes

In reading.

## Questions

Answered on Tuesday.
"""


def test_a_section_takes_the_place_of_the_old_one_of_its_name() -> None:
    found = merged(PAGE, "## Questions\n\nAnswered on Friday.")
    assert found == PAGE.replace("Tuesday", "Friday")


def test_whoever_writes_the_head_leaves_what_others_wrote() -> None:
    found = merged(PAGE, "# What an audit costs\n\nWritten on Friday.\n\n## Where the time goes\n\nIn linking.\n")
    assert found == PAGE.replace("Monday", "Friday").replace("reading", "linking")


def test_a_new_section_comes_last() -> None:
    assert merged(PAGE, "## A night\n\nShort.") == f"{PAGE}\n## A night\n\nShort.\n"


def test_the_first_writer_finds_no_page() -> None:
    assert merged("", "## A night\n\nShort.") == "## A night\n\nShort.\n"

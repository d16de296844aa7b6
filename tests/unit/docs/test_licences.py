"""The licences of what an installation brings along are listed, and all of them are known."""

from tests.tools.docs.licences_page import licence_of, licences_page, needed
from tests.tools.repository import ROOT


def test_every_package_that_comes_along_is_listed_with_its_licence() -> None:
    assert (ROOT / "docs/licences.md").read_text(encoding="utf-8") == licences_page()


def test_no_package_leaves_its_licence_open() -> None:
    assert [package for package in needed() if not licence_of(package)] == []

"""Pages in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.systems.browser.chromium import OpenPage, opened_in

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> OpenPage:
    """Opens the text of a page, as a file and without a network."""
    return opened_in(browser, tmp_path)

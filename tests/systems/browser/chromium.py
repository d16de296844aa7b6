"""Chromium for tests: the one of the system, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page, ViewportSize

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

DESK: ViewportSize = {"width": 1280, "height": 720}


@dataclass
class Opened:
    """A page in the browser, and what should not have happened in it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def violations(self) -> str:
        """What axe-core finds wrong with everything opened that can be; empty where nothing is."""
        from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 of the extra `browser`

        self.page.evaluate("document.querySelectorAll('details').forEach((details) => (details.open = true))")
        results = Axe().run(self.page)
        return str(results.generate_report()) if results.violations_count else ""


OpenPage = Callable[..., Opened]


def opened_in(browser: Browser, folder: Path) -> OpenPage:
    """A function that opens the text of a page, as a file and without a network."""

    def opened(text: str, *, has_script: bool = True, is_dark: bool = False, viewport: ViewportSize = DESK) -> Opened:
        file = folder / "report.html"
        file.write_text(text, encoding="utf-8")
        found = _tab(browser, has_script=has_script)
        found.complaints.clear()
        found.requests.clear()
        found.page.set_viewport_size(viewport)
        found.page.emulate_media(media="screen", color_scheme="dark" if is_dark else "light")
        found.page.goto(file.as_uri())
        return found

    return opened


@cache
def _tab(browser: Browser, *, has_script: bool) -> Opened:
    """The one page in which all are opened, one after another: a new one takes several times as long."""
    page = browser.new_context(offline=True, java_script_enabled=has_script).new_page()
    found = Opened(page)
    page.on("console", lambda message: found.complaints.append(message.text))
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("dialog", lambda dialog: found.complaints.append(dialog.message))
    page.on("request", lambda request: found.requests.append(request.url))
    return found

"""Writes what the site alone has into its copy of the pages: `make site`."""

import sys
from pathlib import Path

from tests.tools.docs.pages import site_pages

if __name__ == "__main__":
    for name, text in site_pages().items():
        (Path(sys.argv[1]) / "docs" / name).write_text(text, encoding="utf-8")

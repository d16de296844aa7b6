"""Tests of a table: what each case tells, and the arguments that it has."""

from collections.abc import Mapping
from typing import Any

import pytest


def cases(names: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Run a test for each row of a table, whose keys tell the story; a lone argument stands there as it is."""
    named = names.split()
    rows = [pytest.param(*(row if len(named) > 1 else (row,)), id=story) for story, row in table.items()]
    return pytest.mark.parametrize(named, rows)

"""How a script in `jobs/` becomes a command: the options, errors and exit codes of the verbs, and one function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from txn_analysis.cli.options import JUDGING
from txn_analysis.cli.verbs import verb
from txn_analysis.spark.interrupts import ending_at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from txn_analysis.cli.verbs import Body


class _Script(typer.Typer):
    """The only command of a script; an interrupted one ends as an interrupted `txn-analysis` does."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with ending_at_once():
            return super().__call__(*args, **kwargs)


def job(name: str, example: str, uses: Collection[str] = JUDGING) -> Callable[[Body], typer.Typer]:
    """Makes `function(request, **own_options) -> exit code` the only command of a script.

    Args:
        name: the script, without `.py`.
        example: options and paths for the end of its help.
        uses: as of `verb`.

    Returns:
        A decorator that leaves the command in place of the function; calling it runs the script.
    """

    def command(body: Body) -> typer.Typer:
        app = _Script(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        verb(app, name, f"spark-submit jobs/{name}.py {example}", reads_files=True, uses=uses)(body)
        return app

    return command

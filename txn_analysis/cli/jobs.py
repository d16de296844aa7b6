"""How a script in `jobs/` becomes a command: the options, errors and exit codes of the verbs, and one function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from txn_analysis.cli.verbs import verb

if TYPE_CHECKING:
    from collections.abc import Callable

    from txn_analysis.cli.verbs import Body


def job(name: str, example: str) -> Callable[[Body], typer.Typer]:
    """Makes `function(request, **own_options) -> exit code` the only command of a script.

    Args:
        name: the script, without `.py`.
        example: options and paths for the end of its help.

    Returns:
        A decorator that leaves the command in place of the function; calling it runs the script.
    """

    def command(body: Body) -> typer.Typer:
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        verb(app, name, f"spark-submit jobs/{name}.py {example}", judges=True)(body)
        return app

    return command

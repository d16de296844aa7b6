"""Options that take one value are given once, and those that were removed are named."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Any

from typer.core import TyperCommand

_REMOVED = frozenset({"--depth"})


class OnceEach(TyperCommand):
    """A verb that refuses a second value of an option with room for one: the last one would win in silence.

    An option of an earlier version is refused in words that say what to do.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the words behind the verb.

        Args:
            ctx: typer's own context of the call.
            args: the words.

        Returns:
            The words that are left over.

        Raises:
            UsageError: an option was removed, or is there twice and not to be repeated; or the words are no command.
        """
        for name in takewhile("--".__ne__, (word.partition("=")[0] for word in args)):
            if name in _REMOVED:
                ctx.fail(f"{name} was removed: leave it out")
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(param for param in given if _takes_one_value(param)).items():
            if times > 1:
                ctx.fail(f"Option '{option.opts[0]}' is given {times} times, but takes one value: give it once.")
        return super().parse_args(ctx, args)


def _takes_one_value(param: Any) -> bool:
    return param.param_type_name == "option" and not (param.multiple or param.is_flag or param.count)

"""How `--help` of a verb shows its options: sorted by what they are about."""

from __future__ import annotations

from typing import Any

from txn_analysis.cli.once import OnceEach
from txn_analysis.cli.options import GROUPS

_OWN = "Options"
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}


class GroupedOnceEach(OnceEach):
    """A verb whose options stand in groups: its own first, then those of `options.GROUPS`."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes arguments and options.

        Args:
            ctx: typer's own context of the call.
            formatter: takes what is written.
        """
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", _OWN, *GROUPS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                is_argument = param.param_type_name == "argument"
                sections["Arguments" if is_argument else _GROUP_OF.get(str(param.name), _OWN)].append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

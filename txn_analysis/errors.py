"""The few ways in which an audit cannot be done, named by the user's problem."""

from __future__ import annotations


class AuditError(Exception):
    """The audit could not be done. The message says what, where, and what to do; the command line exits with 2."""

    exit_code = 2


class InputError(AuditError):
    """Some inputs could not be read or understood; one line for each, with byte offset and remedy.

    A last line may say what would do for all of them.
    """

    def __init__(self, problems: list[str], for_all: str | None = None) -> None:
        super().__init__("\n".join([*problems, *([] if for_all is None else [for_all])]))
        self.problems = problems


class ConfigError(AuditError):
    """A configuration file, environment variable or option has an unknown name or a value out of range."""


class WarehouseError(AuditError):
    """The warehouse cannot be read or written, or does not hold what was asked for."""


class MissingToolError(AuditError):
    """The machine lacks something that Spark needs, such as a JDK or the Delta jars."""


class AccountingError(AuditError):
    """The bytes of an input do not add up: a fault of this program, so that nothing is judged on it."""

"""How a transaction, or one offset of a partition, is written: `orders-0@161`, `orders-0:205`."""

from __future__ import annotations

import re
from typing import NamedTuple, Protocol

from txn_analysis.kafka.names import INT32_MAX, INT64_MAX
from txn_analysis.text import clip, shell_option, shell_word

_ADDRESS = re.compile(r"(.+)-([0-9]{1,10})([@:])([0-9]{1,19})", re.DOTALL)


class _Located(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def txn_start_offset(self) -> int: ...


class Address(NamedTuple):
    """The transaction that begins at an offset of a partition, or whatever stands at that offset."""

    topic: str
    partition: int
    offset: int
    is_transaction: bool = True

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}{'@' if self.is_transaction else ':'}{self.offset}"

    @classmethod
    def of(cls, text: str) -> Address:
        """An address as it is typed.

        Raises:
            ValueError: it is none.
        """
        match = _ADDRESS.fullmatch(text)
        if match is None or int(match[2]) > INT32_MAX or int(match[4]) > INT64_MAX:
            raise ValueError(
                f"{clip(text, 80)}: is no address: give TOPIC-PARTITION@OFFSET for the transaction that begins there, "
                "such as orders-0@161, or TOPIC-PARTITION:OFFSET for an offset"
            )
        return cls(match[1], int(match[2]), int(match[4]), match[3] == "@")

    @classmethod
    def of_transaction(cls, one: _Located) -> Address:
        """The address of whatever says where its transaction begins."""
        return cls(one.topic, one.partition, one.txn_start_offset)

    @property
    def words(self) -> str:
        """The words of a command that name it: itself, but where a shell or a verb would take it for an option."""
        if not self.topic.startswith("-"):
            return shell_word(str(self))
        offset = f"--{'start-' if self.is_transaction else ''}offset {self.offset}"
        return f"{shell_option('--topic', self.topic)} --partition {self.partition} {offset}"

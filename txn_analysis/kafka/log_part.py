"""A part of all segments, such as the third of seven; each segment is in one of the parts."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import NamedTuple

_TEXT = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


class LogPart(NamedTuple):
    """The part `number` of `part_count`, from 1 on."""

    number: int
    part_count: int

    @classmethod
    def of(cls, text: str) -> LogPart:
        """The part that a text such as `3/7` means.

        Raises:
            ValueError: it means none.
        """
        found = _TEXT.fullmatch(text)
        if found is None or int(found[1]) > int(found[2]):
            raise ValueError("is no part such as 3/7, the third of seven")
        return cls(int(found[1]), int(found[2]))

    def holds(self, topic: str | None, partition: int | None, base_offset: int) -> bool:
        """The segment is in it. That is decided by its place alone, so that it stays so while the segment grows."""
        digest = blake2b(f"{topic} {partition} {base_offset}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.part_count == self.number - 1

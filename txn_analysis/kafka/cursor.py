"""Reading bytes from front to back, as Kafka's own formats are made to be read."""

from __future__ import annotations


class CutShortError(ValueError):
    """The bytes end within a field, or a number has more bytes than its type."""


class Cursor:
    """A place in some bytes; what is read moves it on."""

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything was read."""
        return self._at == len(self._data)

    def unsigned_varint(self, most_bytes: int) -> int:
        """Seven bits a byte, the lowest first (org.apache.kafka.common.utils.ByteUtils).

        Raises:
            CutShortError: there are no more bytes, or the number has more than `most_bytes`.
        """
        value, data, at = 0, self._data, self._at
        for shift in range(0, 7 * most_bytes, 7):
            if at >= len(data):
                raise CutShortError("a number is cut short")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._at = at
                return value
        raise CutShortError("a number is too long")

"""A second reader of batch lines, written from kafka-formats.md alone: words between single spaces, no expression."""

from txn_analysis.reading.grammar.forms import BATCH_FORMS

_INT16, _INT32, _INT64 = 2**15, 2**31, 2**63
_HEAD = ("baseOffset", "lastOffset", "count", "baseSequence", "lastSequence", "producerId", "producerEpoch")
_FLAGS = ("partitionLeaderEpoch", "isTransactional", "isControl")
_TAIL = ("position", "TIME")
_SIZE = ("size", "magic", "compresscodec", "crc")
LAYOUTS = (
    (*_HEAD, *_FLAGS, "deleteHorizonMs", *_TAIL, *_SIZE, "isvalid"),
    (*_HEAD, *_FLAGS, *_TAIL, *_SIZE, "isvalid"),
    (*_HEAD, *_FLAGS, *_TAIL, "isvalid", *_SIZE),
)
_TIMES = {b"CreateTime", b"LogAppendTime", b"NoTimestampType"}
_CODECS = {name for word in (b"none", b"gzip", b"snappy", b"lz4", b"zstd") for name in (word, word.upper())}
_BOUNDS = {
    "baseOffset": _INT64,
    "lastOffset": _INT64,
    "count": _INT32,
    "baseSequence": _INT32,
    "lastSequence": _INT32,
    "producerId": _INT64,
    "producerEpoch": _INT16,
    "partitionLeaderEpoch": _INT32,
    "position": _INT64,
    "TIME": _INT64,
    "size": _INT32,
    "crc": 2**32,
}
_FROM_MINUS_ONE = ("baseSequence", "lastSequence", "producerId", "producerEpoch", "partitionLeaderEpoch")
assert len(LAYOUTS) == len(BATCH_FORMS), "a grammar was added: add its layout"

Fields = dict[str, int | bytes]


def batch_fields(line: bytes) -> Fields | None:
    """The fields of a batch line of message format 2, or None where no broker's batch prints so."""
    words = line.split(b" ")
    for layout in LAYOUTS:
        if len(words) == 2 * len(layout) and (fields := _fields(words, layout)) is not None:
            return fields if _is_plausible(fields) else None
    return None


def _fields(words: list[bytes], layout: tuple[str, ...]) -> Fields | None:
    fields: Fields = {}
    for name, label, word in zip(layout, words[0::2], words[1::2], strict=True):
        is_label = label[:-1] in _TIMES if name == "TIME" else label[:-1] == name.encode()
        value = _value(name, word)
        if not is_label or label[-1:] != b":" or value is None:
            return None
        fields[name] = value
    return fields


def _value(name: str, word: bytes) -> int | bytes | None:
    if name in _BOUNDS:
        number = _integer(word)
        low = 0 if name == "crc" else -_BOUNDS[name]
        return number if number is not None and low <= number < _BOUNDS[name] else None
    if name in {"isTransactional", "isControl", "isvalid"}:
        return word if word in {b"true", b"false"} else None
    if name == "magic":
        return word if word == b"2" else None
    if name == "compresscodec":
        return word if word in _CODECS else None
    return word if _is_optional_long(word) else None


def _integer(word: bytes) -> int | None:
    digits = word.removeprefix(b"-")
    is_number = 1 <= len(digits) <= 19 and all(b"0"[0] <= byte <= b"9"[0] for byte in digits)
    return int(word) if is_number else None


def _is_optional_long(word: bytes) -> bool:
    digits = word[len(b"OptionalLong[") : -1]
    number = _integer(digits) if word == b"OptionalLong[" + digits + b"]" and not digits.startswith(b"-") else None
    return word == b"OptionalLong.empty" or (number is not None and number < _INT64)


def _is_plausible(fields: Fields) -> bool:
    n = {name: value for name, value in fields.items() if isinstance(value, int)}
    return (
        0 <= n["baseOffset"] <= n["lastOffset"] < _INT64 - 1
        and 0 <= n["count"] <= n["lastOffset"] - n["baseOffset"] + 1
        and 0 <= n["position"] < _INT64 - n["size"]
        and n["size"] > 0
        and all(n[name] >= -1 for name in _FROM_MINUS_ONE)
    )

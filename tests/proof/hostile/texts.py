"""Hostile texts that are no capture of a cluster: odd bytes, JSON that Kafka does not write, lines made to be slow."""

from tests.tools.dump_texts import batch, deep, dumping, record

MIB = 1 << 20
STATE_RECORD = (
    b"| offset: 0 CreateTime: 1 keySize: 5 valueSize: -1 sequence: -1 headerKeys: [] key: "
    b"transaction_metadata::transactionalId=a payload: <DELETE>\n"
)
PAYLOADS = {
    "carriage returns": b"a\r\rb\r\n\rc",
    "Unicode line ends": "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg".encode(),
    "NUL bytes": b"a\x00\x00b",
    "no UTF-8": b"\xff\xfe\xc0\x80\xed\xa0\x80\xf8",
    "no UTF-8, with newlines": b"\xff\n\xfe\n\n\xc3",
    "escape sequences": b"\x1b[2J\x1b]0;x\x07\x9b31m",
    "right-to-left marks": "\u202e\u2066\u200f".encode(),
    "only newlines": b"\n" * 50,
    "a batch line": batch(1, 1, 100).rstrip(b"\n"),
    "a section": dumping("orders-7") + batch(0, 1, 0).rstrip(b"\n"),
    "nothing": b"",
}


def odd_payloads() -> dict[str, bytes]:
    """Deep dumps whose payloads, keys and header keys hold odd bytes."""
    texts = {}
    for name, payload in PAYLOADS.items():
        texts[f"payload of {name}"] = deep("orders-0", record(0, b"k", payload), record(1))
        texts[f"key of {name}"] = deep("orders-0", record(0, payload, b"v"), record(1))
        texts[f"header key of {name}"] = deep("orders-0", record(0, headers=payload), record(1))
        # Not replaced by U+FFFD, as a tool's standard output in another charset would leave it.
        raw = b"| offset: 0 CreateTime: 1 keySize: 1 valueSize: %d sequence: 0 headerKeys: [] key: k payload: " % (
            len(payload)
        )
        texts[f"raw payload of {name}"] = deep("orders-0", raw + payload + b"\n", record(1))
    return texts


_KEY = b'"key":{"type":0,"data":{"transactionalId":"a"}}'
_DATA = (
    b'{"producerId":1,"producerEpoch":0,"transactionTimeoutMs":60000,"transactionStatus":0,'
    b'"transactionPartitions":null,"transactionLastUpdateTimestampMs":1,"transactionStartTimestampMs":-1}'
)
JSON_RECORD = b"{" + _KEY + b',"value":{"version":0,"data":' + _DATA + b"}}"
BAD_JSON = {
    "a repeated key": JSON_RECORD.replace(b'"producerId":1', b'"producerId":1,"producerId":2'),
    "a repeated id": JSON_RECORD.replace(b'"transactionalId":"a"', b'"transactionalId":"a","transactionalId":"b"'),
    "a huge integer": JSON_RECORD.replace(b'"producerId":1', b'"producerId":1' + b"0" * 400),
    "an integer without end": JSON_RECORD.replace(b'"producerId":1', b'"producerId":1' + b"0" * 100_000),
    "NaN": JSON_RECORD.replace(b'"producerId":1', b'"producerId":NaN'),
    "infinity": JSON_RECORD.replace(b'"producerId":1', b'"producerId":-Infinity'),
    "a float": JSON_RECORD.replace(b'"producerId":1', b'"producerId":1e400'),
    "a string for a number": JSON_RECORD.replace(b'"producerId":1', b'"producerId":"1"'),
    "half a surrogate pair": JSON_RECORD.replace(b'"a"', b'"\\ud800"'),
    "deep nesting": JSON_RECORD.replace(b"null", b"[" * 10_000 + b"]" * 10_000),
    "deep nesting of objects": JSON_RECORD.replace(b"null", b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
    "nesting without end": JSON_RECORD[:40] + b"[" * 100_000,
    "NUL": JSON_RECORD.replace(b'"a"', b'"a\x00"'),
    "no UTF-8": JSON_RECORD.replace(b'"a"', b'"\xff"'),
}


def bad_json() -> dict[str, bytes]:
    """Console exports and decoded dumps, each with a good record before and after a bad one."""
    texts = {}
    for name, bad in BAD_JSON.items():
        texts[f"console with {name}"] = JSON_RECORD + bad + JSON_RECORD
        key, value = bad[len(b'{"key":') : bad.find(b',"value":')], bad[bad.find(b'"value":') + 8 : -1]
        key = key.replace(b'"type":0', b'"type":"0"')
        value = value.replace(b'"version":0', b'"version":"0"')
        line = b"| offset: %d CreateTime: 1 keySize: 5 valueSize: 50 sequence: -1 headerKeys: [] key: %s payload: %s\n"
        lines = [batch(k, 1, 100 * k) + line % (k, key, value) for k in range(2)]
        texts[f"dump with {name}"] = dumping("__transaction_state-0") + b"".join(lines)
    return texts


def slow_lines(size: int = MIB) -> dict[str, bytes]:
    """Texts of about `size` bytes on which a careless expression or loop takes time beyond all bounds."""
    start = dumping("orders-0") + batch(0, 1, 0)
    state = dumping("__transaction_state-0") + batch(0, 1, 0)
    head = b"| offset: 0 CreateTime: 1 keySize: 1 valueSize: 1 sequence: 0 headerKeys: ["
    end = b"\nDumping a-0/00000000000000000000.snapshot\n"
    json_key = (
        b'| offset: 0 CreateTime: 1 keySize: 5 valueSize: 5 sequence: -1 headerKeys: [] key: {"type":"0","data":{'
    )
    return {
        "sizes": start + head + b"] key: k payload: " + b"keySize: 100000 " * (size // 16) + end,
        "sizes before sections": start + b"keySize: 100000 " * (size // 32) + b" key: " + end * (size // 90),
        "positions": start + b"baseOffset: 1 lastOffset: 1 count: 1" + b" position: 1 size: 1" * (size // 20) + end,
        "an offset of many digits": start + b"baseOffset: " + b"9" * size + end,
        "tokens": start + b"| offset: 0" + b" keySize: 1 valueSize: 1" * (size // 24) + end,
        "state JSON": state + json_key + b'}} payload: {"version":"0","data":{' * (size // 35) + end,
        "brackets": start + head + b"]" * size + end,
        "record lines": start + (head + b"\n") * (size // 80),
        "gaps in the chain": dumping("orders-0") + b"".join(batch(k, 1, 300 * k) for k in range(size // 300)),
        "one position": dumping("orders-0") + b"".join(batch(k, 1, 100) for k in range(size // 300)),
        "sections": end * (size // 50),
        "empty lines in a log": start + b"\n" * size,
        "empty lines in the state": state + STATE_RECORD + b"\n" * size,
        "short lines in the state": state + STATE_RECORD + b"x\n" * (size // 2),
        "empty lines in an export": b"a::NULL\n" + b"\n" * size,
        "separators in an export": b"a::NULL\n" + b"\n::TransactionMetadata(transactionalId=" * (size // 39),
        "separators in one line": b"a::NULL\n" + b"::TransactionMetadata(transactionalId=" * (size // 38) + b"\n",
        "objects without end": JSON_RECORD + b'{"key":[' * (size // 8),
        "a long string": JSON_RECORD + b'{"key":"' + b"x" * size,
    }

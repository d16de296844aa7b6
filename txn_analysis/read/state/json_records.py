"""The records of a decoded `__transaction_state` dump that are printed as JSON, tools 4.1 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.read.state.forms import KEY, KEY_HEAD_BYTES, PAYLOAD, TOMBSTONE
from txn_analysis.read.state.value_sizes import MISFIT, json_value_bytes
from txn_analysis.read.state.values import JSON_DECODER, BadValueError, fields_of, id_bytes, json_id, json_value

if TYPE_CHECKING:
    from txn_analysis.read.state.records import TransactionLogValue


def json_content(content: bytes, key_bytes: int, value_bytes: int) -> tuple[str, TransactionLogValue | None]:
    """Id and value from ` key: {…} payload: {…}` and its newline, whose record line prints these sizes.

    Raises:
        BadValueError: it is not what the tool prints of a state record of these sizes.
    """
    transactional_id, value = _content(content, value_bytes)
    if key_bytes != KEY_HEAD_BYTES + id_bytes(transactional_id):
        raise BadValueError("the id does not fill the record's key")
    return transactional_id, value


def _content(content: bytes, value_bytes: int) -> tuple[str, TransactionLogValue | None]:
    try:
        text = content.decode()
        key, at = JSON_DECODER.raw_decode(text, len(KEY))
        payload = text[at:-1]
        is_tombstone = payload == (PAYLOAD + TOMBSTONE).decode()
        value, end = (None, len(payload)) if is_tombstone else JSON_DECODER.raw_decode(payload, len(PAYLOAD))
    except (ValueError, RecursionError):  # no UTF-8, no JSON, endless digits, or nested without end
        raise BadValueError("not the JSON of a transaction state record") from None
    record_type, key_data = fields_of(key, "type", "data")
    if record_type != "0" or not payload.startswith(PAYLOAD.decode()) or end != len(payload):
        raise BadValueError("not the JSON of a transaction state record")
    if is_tombstone:
        return json_id(key_data), None
    version, data = fields_of(value, "version", "data")
    if version not in ("0", "1"):
        raise BadValueError("a value version that is not known")
    found = json_value(data)
    if json_value_bytes(int(version), data) != value_bytes:
        raise BadValueError(MISFIT)
    return json_id(key_data), found

"""The records of a decoded `__transaction_state` dump that are printed as JSON, tools 4.1 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.read.state.forms import KEY, KEY_HEAD_BYTES, PAYLOAD, TOMBSTONE
from txn_analysis.read.state.value_sizes import LEAST_FIELD_BYTES, MISFIT, can_hold_producer_id, json_value_bytes
from txn_analysis.read.state.values import (
    JSON_DECODER,
    BadValueError,
    fields_of,
    id_bytes,
    json_id,
    json_value,
    unknown_names,
)

if TYPE_CHECKING:
    from txn_analysis.read.state.records import TransactionLogValue

_NOT_JSON = "not the JSON of a transaction state record"


def json_content(content: bytes, key_bytes: int, value_bytes: int) -> tuple[str, TransactionLogValue | None]:
    """Id and value from ` key: {…} payload: {…}` and its newline, whose record line prints these sizes.

    Raises:
        BadValueError: it is not what the tool prints of a state record of these sizes.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadValueError(_NOT_JSON) from None
    transactional_id, at = json_key(text, key_bytes)
    try:
        return transactional_id, _value(text[at:-1], value_bytes)
    except BadValueError as problem:
        problem.transactional_id = transactional_id
        raise


def json_key(text: str, key_bytes: int) -> tuple[str, int]:
    """The id from ` key: {…}`, whose record line prints this size, and where the key ends in the text.

    Raises:
        BadValueError: it is not the key of a state record of this size.
    """
    try:
        key, end = JSON_DECODER.raw_decode(text, len(KEY))
    except (ValueError, RecursionError):  # no JSON, endless digits, or nested without end
        raise BadValueError(_NOT_JSON) from None
    record_type, key_data = fields_of(key, "type", "data")
    if record_type != "0":
        raise BadValueError(_NOT_JSON)
    transactional_id = json_id(key_data)
    if key_bytes != KEY_HEAD_BYTES + id_bytes(transactional_id):
        raise BadValueError("the id does not fill the record's key")
    return transactional_id, end


def _value(payload: str, value_bytes: int) -> TransactionLogValue | None:
    if payload == (PAYLOAD + TOMBSTONE).decode():
        return None
    try:
        value, end = JSON_DECODER.raw_decode(payload, len(PAYLOAD))
    except (ValueError, RecursionError):
        raise BadValueError(_NOT_JSON) from None
    if not payload.startswith(PAYLOAD.decode()) or end != len(payload):
        raise BadValueError(_NOT_JSON)
    version, data = fields_of(value, "version", "data")
    if version not in ("0", "1"):
        raise BadValueError("a value version that is not known")
    is_flexible = version == "1"
    found = json_value(data, is_flexible=is_flexible)
    spare_bytes = value_bytes - json_value_bytes(data, is_flexible=is_flexible)
    if spare_bytes == 0 and not found.may_list_more:
        return found
    fields = unknown_names(data, is_flexible=is_flexible)
    if not is_flexible or spare_bytes < LEAST_FIELD_BYTES * max(len(fields), 1):
        raise BadValueError(MISFIT)
    return found._replace(may_list_more=True, may_name_more=can_hold_producer_id(spare_bytes))

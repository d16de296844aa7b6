"""The records of a decoded `__transaction_state` dump, by tool version (kafka-formats.md, 1.4 and 3).

Each expression is matched where a record begins or goes on, never searched for.
"""

from __future__ import annotations

import re

_TIMESTAMP = rb"(?:CreateTime|LogAppendTime|NoTimestampType): (?P<ms>-?\d{1,19})"
# 2.2 to 2.7 and 3.0 on, which spell the sizes differently.
RECORD = re.compile(
    rb"\| offset: (?P<offset>\d{1,19}) "
    + _TIMESTAMP
    + rb" key[sS]ize: (?P<key>-?\d{1,10}) value[sS]ize: (?P<value>-?\d{1,10}) sequence: -?\d{1,10} headerKeys: \[\]"
)
RECORD_2_8 = re.compile(
    rb"\| offset: (?P<offset>\d{1,19}) isValid: (?P<valid>true|false) crc: (?:null|\d{1,10})"
    rb" keySize: (?P<key>-?\d{1,10}) valueSize: (?P<value>-?\d{1,10}) "
    + _TIMESTAMP
    + rb" baseOffset: \d{1,19} lastOffset: \d{1,19} baseSequence: -?\d{1,10} lastSequence: -?\d{1,10}"
    rb" producerEpoch: -?\d{1,5} partitionLeaderEpoch: -?\d{1,10} batchSize: \d{1,10} magic: 2"
    rb" compressType: [A-Za-z0-9]+ position: \d{1,19} sequence: -?\d{1,10} headerKeys: \[\]"
)
# Up to 2.1 records stand alone, without batch lines; 0.11 prints no producerEpoch.
OLD_RECORD = re.compile(
    rb"offset: (?P<offset>\d{1,19}) position: \d{1,19} "
    + _TIMESTAMP
    + rb" isvalid: (?P<valid>true|false) keysize: (?P<key>-?\d{1,10}) valuesize: (?P<value>-?\d{1,10}) magic: 2"
    rb" compresscodec: [A-Za-z0-9]+ producerId: -?\d{1,19} (?:producerEpoch: -?\d{1,5} )?sequence: -?\d{1,10}"
    rb" isTransactional: (?:true|false) headerKeys: \[\]"
)
# The newline before a line that a reader must look at; all other lines are alike to it.
LINE_START = re.compile(rb"\n(?=\| offset: |baseOffset: |offset: )")
CONTROL_SUFFIX = re.compile(rb" (?:endTxnMarker|controlType|LeaderChange|Snapshot\w+|KRaft\w+):? ?[^\n]*\n|\n")
KEY = b" key: "
PAYLOAD = b" payload: "
KEY_HEAD_BYTES = 4  # of the key in the log: record type and string length, int16 each, before the id
TOMBSTONE = b"<DELETE>"
TEXT_KEY_BYTES = 64  # at least the longest head of a key in the text form
TEXT_KEY = re.compile(rb" key: (?:transaction_metadata::)?transactionalId=")
TEXT_PAYLOAD = re.compile(
    rb" payload: (?:<DELETE>|producerId:(?P<producer_id>-?\d{1,19}),producerEpoch:(?P<producer_epoch>-?\d{1,5}),"
    rb"state=(?P<state>\w+),partitions=(?:\[(?P<listed>[^\]\n]*)\]|(?:Hash)?Set\((?P<scala>[^)\n]*)\)),"
    rb"txnLastUpdateTimestamp=(?P<last_update_ms>-?\d{1,19}),txnTimeoutMs=(?P<timeout_ms>\d{1,10}))\n"
)
# What the decoder prints for a record that it cannot read: 4.1 on, and 3.5 to 4.0.
DECODER_ERROR = re.compile(
    rb" key: (?:Unknown record type -?\d+ at offset \d+, skipping\.|Error at offset \d+, skipping\.[^\n]*"
    rb"|unknown::version=-?\d+)(?: payload: <DELETE>)?\n"
)

"""What the coordinators wrote: `transaction_states`, and `group_offsets` of the consumer groups."""

from __future__ import annotations

from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table, array, in_order, not_negative, struct

TRANSACTION_STATES = Table(
    name="transaction_states",
    grain="one record of `__transaction_state`, tombstones and undecodable records included",
    key=("input_id", "section_index", "ordinal"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section; 0 in a console export", nullable=False),
        Col(
            "ordinal",
            BIGINT,
            "order in the section: byte offset of the record's text; in a log directory the record's offset",
            nullable=False,
        ),
        Col("state_partition", INT, "partition of `__transaction_state`; NULL in a console export"),
        Col("offset", BIGINT, "offset of the record; NULL in a console export"),
        Col("recorded_ms", BIGINT, "broker's time of the append; NULL in a console export"),
        Col("is_after_gap", BOOLEAN, "the offset just before is not in the same file; NULL at a file's start"),
        Col("batch_base_offset", BIGINT, "first offset of its batch; NULL where no batch is printed, or none was read"),
        Col("batch_last_offset", BIGINT, "last offset of its batch; NULL like batch_base_offset"),
        Col("leader_epoch", INT, "leader epoch of the state's partition in its batch; NULL like batch_base_offset"),
        Col("transactional_id", STRING, "transactional id; NULL if the record's key could not be decoded"),
        Col("transactional_id_hash", INT, "Java's String.hashCode of the id"),
        Col("is_tombstone", BOOLEAN, "the id was removed (expired)", nullable=False),
        Col("is_undecodable", BOOLEAN, "the tool could not decode the record", nullable=False),
        Col("state", STRING, "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, …"),
        Col("producer_id", BIGINT, "producer id"),
        Col("previous_producer_id", BIGINT, "producer id before a rotation; NULL if none"),
        Col("next_producer_id", BIGINT, "producer id after a rotation; NULL if none"),
        Col("producer_epoch", INT, "producer epoch"),
        Col("timeout_ms", BIGINT, "the transaction's timeout"),
        Col("topic_partitions", array(struct(topic=STRING, partition=INT)), "sorted; empty if none"),
        Col("last_update_ms", BIGINT, "coordinator's time of the change"),
        Col("start_ms", BIGINT, "coordinator's time of the transaction's start; NULL if none or not printed"),
        Col("client_transaction_version", INT, "transaction version of the client; NULL if not printed"),
        Col(
            "may_list_more",
            BOOLEAN,
            "tagged fields of a newer Kafka are in the value, or may be, so that its partitions may be more; false "
            "where the broker's own file was read, whose list is whole; NULL without such fields",
        ),
        Col(
            "may_name_more",
            BOOLEAN,
            "a field that was not printed, or is of a newer Kafka, can hold a producer id; NULL without",
        ),
    ),
    partition_by=("ingest_id",),
    checks={"epochs_not_negative": not_negative("producer_epoch")},
)


GROUP_OFFSETS = Table(
    name="group_offsets",
    grain="one consumer group with offsets committed by one producer in one range of a dumped segment of "
    "`__consumer_offsets`, or, without a group, such a range: the keys of all of its records were read",
    key=("input_id", "section_index", "text_start_bytes", "group_id", "producer_id"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "`Dumping …` section of the input", nullable=False),
        Col("partition", INT, "partition of `__consumer_offsets`", nullable=False),
        Col("text_start_bytes", BIGINT, "where the range begins in the text", nullable=False),
        Col("text_end_bytes", BIGINT, "where it ends", nullable=False),
        Col("group_id", STRING, "the consumer group; NULL in the row of the range itself"),
        Col("producer_id", BIGINT, "who committed the offsets; NULL without a transaction, and without a group"),
        Col("last_offset", BIGINT, "last offset of the last batch with such offsets", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"text_in_order": in_order("text_start_bytes", "text_end_bytes")},
)

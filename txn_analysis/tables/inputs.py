"""What was read and what was asked: `inputs` and `runs`, and `rejects`, the spans that were not understood.

No text of a span is ever kept.
"""

from __future__ import annotations

from txn_analysis.tables._schema import (
    BIGINT,
    BOOLEAN,
    COUNTS,
    INT,
    STRING,
    Col,
    Table,
    adds_up,
    array,
    at_least,
    inner_array,
    not_negative,
    one_of,
    struct,
)

SECTION = struct(
    section_index=INT,
    kind=STRING,
    dump_path=STRING,
    topic=STRING,
    partition=INT,
    file_base_offset=BIGINT,
    first_offset=BIGINT,
    end_offset=BIGINT,
    text_start_bytes=BIGINT,
    text_end_bytes=BIGINT,
    torn_bytes=BIGINT,
    is_start_proven=BOOLEAN,
    grammar=STRING,
    stated=STRING,
    rival_positions=inner_array(BIGINT),
)

INPUTS = Table(
    name="inputs",
    grain="one file that was read into one capture of one cluster",
    key=("cluster", "capture", "input_id"),
    columns=(
        Col("cluster", STRING, "the cluster's name, as given with --cluster", nullable=False),
        Col("capture", STRING, "the capture's name: --capture, or derived from the fingerprints", nullable=False),
        Col("input_id", STRING, "fingerprint of the content; the same content is the same input", nullable=False),
        Col(
            "ingest_id",
            STRING,
            "the ingest that read the content; rows of other ingests are not evidence",
            nullable=False,
        ),
        Col("path", STRING, "where the file was found", nullable=False),
        Col("kind", STRING, "kinds of its sections, joined by '+'; NULL where it was not recognised"),
        Col("grammar", STRING, "which tool versions print such text"),
        Col("compression", STRING, "gzip or zstd; NULL for plain text"),
        Col("size_bytes", BIGINT, "size of the file as stored", nullable=False),
        Col("text_bytes", BIGINT, "size of its text, decompressed", nullable=False),
        Col("parsed_bytes", BIGINT, "bytes that became rows, or are structure of the dump", nullable=False),
        Col("rejected_bytes", BIGINT, "bytes in `rejects`; parsed + rejected = text", nullable=False),
        Col("newest_moment_ms", BIGINT, "newest timestamp that a broker's clock wrote in it; NULL if none"),
        Col("problem", STRING, "why the file, or its end, was not understood; NULL where it was"),
        Col(
            "sections",
            array(SECTION),
            "the `Dumping …` sections in file order; first_offset and end_offset are those of its batches, "
            "rival_positions are those from which on two parts of the "
            "text claim the same batches. A file of a log directory is one section; a checkpoint is "
            "one for each statement, with its offset in file_base_offset",
            nullable=False,
        ),
    ),
    checks={
        "every_byte_accounted": adds_up("parsed_bytes", "rejected_bytes", total="text_bytes"),
        "sizes_not_negative": not_negative("size_bytes", "parsed_bytes", "rejected_bytes"),
    },
)


REJECTS = Table(
    name="rejects",
    grain="one span of one input that was not understood",
    key=("input_id", "offset_bytes"),
    columns=(
        Col("ingest_id", STRING, "the ingest that read the content", nullable=False),
        Col("input_id", STRING, "fingerprint of the input", nullable=False),
        Col("section_index", INT, "section of the input; NULL outside any section"),
        Col("offset_bytes", BIGINT, "where the span begins in the text", nullable=False),
        Col("length_bytes", BIGINT, "how long it is", nullable=False),
        Col("reason", STRING, "why it was not understood", nullable=False),
    ),
    partition_by=("ingest_id",),
    checks={"span_not_empty": at_least("length_bytes", 1)},
)


RUNS = Table(
    name="runs",
    grain="one run",
    key=("run_id",),
    columns=(
        Col("run_id", STRING, "digest of the evidence and the parameters", nullable=False),
        Col("run_number", BIGINT, "order of first completion in this warehouse", nullable=False),
        Col("cluster", STRING, "the cluster's name", nullable=False),
        Col("capture", STRING, "the capture that was judged", nullable=False),
        Col("earlier_captures", array(STRING), "captures behind it, oldest first"),
        Col("as_of_ms", BIGINT, "moment at which the files were copied; NULL without any broker's clock"),
        Col("as_of_basis", STRING, "given, or newest_broker_timestamp"),
        Col("parameters", STRING, "the effective settings, as JSON", nullable=False),
        Col("input_count", INT, "inputs of the capture", nullable=False),
        Col("table_versions", COUNTS, "Delta version of each table that was read"),
        Col("verdict_counts", COUNTS, "findings by verdict"),
        Col("state_coverage", STRING, "what was seen of `__transaction_state`, as JSON", nullable=False),
        Col(
            "warnings",
            STRING,
            "what does not hang yet and will, as JSON; of each kind the worst applications",
            nullable=False,
        ),
        Col("outcome", STRING, "findings where something hangs, clean, or could_not_tell", nullable=False),
    ),
    checks={
        "numbered_from_one": at_least("run_number", 1),
        "known_outcome": one_of("outcome", ("clean", "findings", "could_not_tell")),
        "known_basis": one_of("as_of_basis", ("given", "newest_broker_timestamp")),
    },
)

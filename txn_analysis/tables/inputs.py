"""`inputs`: what was read, to the byte."""

from txn_analysis.tables._checks import adds_up, not_negative
from txn_analysis.tables._schema import BIGINT, BOOLEAN, INT, STRING, Col, Table, array, inner_array, struct

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

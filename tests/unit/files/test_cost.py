"""Headers alone, or all of a segment: by the size of its batches."""

from pathlib import Path

import pytest

from benchmarks.log_dirs import write_log_dir
from tests.tools.s3_server import Bucket
from tests.tools.sessions import no_session
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planning import plan_inputs

MIB = 1 << 20


@pytest.mark.parametrize(("batch_bytes", "are_headers_alone"), [(16 << 10, False), (2 * MIB, True)])
def test_of_large_batches_the_headers_alone_are_read(
    bucket: Bucket, tmp_path: Path, batch_bytes: int, are_headers_alone: bool
) -> None:
    write_log_dir(tmp_path, 32 * MIB, batch_bytes)
    bucket.put_folder(tmp_path, "copies")
    plan_inputs(no_session, find_files(["s3://kept/copies"]))
    assert (bucket.bytes_read < 5 * MIB) == are_headers_alone  # the first ones are looked at in a block
    assert bucket.request_count < 200

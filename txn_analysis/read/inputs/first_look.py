"""A look at the texts of a call before Spark starts: what is certainly refused is refused within a second.

Small calls are read whole, of large ones the head of each file: a slip in a path names a wrong file from its start.
Brokers' own files, and whatever only all bytes of a large file can tell, are left to `plan_inputs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from txn_analysis.read.inputs.planned_input import check_inputs, plan_text
from txn_analysis.read.inputs.recognise import HEAD_BYTES, Refusal
from txn_analysis.read.inputs.survey_job import survey_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from txn_analysis.read.inputs.find_files import SourceFile
    from txn_analysis.read.inputs.survey_job import FileSurvey

_READ_WHOLE_BYTES = 16 << 20  # of all files together: a tenth of a second


def check_at_first_sight(files: Sequence[SourceFile]) -> None:
    """Refuses texts of which a first look already says that they cannot be read.

    Args:
        files: all files of a call.

    Raises:
        InputError: one line for each such text, as `check_inputs` says it.
    """
    is_small = sum(file.size_bytes for file in files) <= _READ_WHOLE_BYTES
    looked_at = survey_texts(files, None if is_small else HEAD_BYTES)
    certain = (found for found, is_whole in looked_at if is_whole or _is_refused(found))
    check_inputs([plan_text(found) for found in certain], skip_unrecognised=False)


def _is_refused(found: FileSurvey) -> bool:
    return found.failure is not None or any(isinstance(chunk.recognition, Refusal) for chunk in found.chunks)

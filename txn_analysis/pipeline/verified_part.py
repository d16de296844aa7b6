"""Which segments have all of their checksums looked at tonight, where a part is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from txn_analysis.errors import ConfigError
from txn_analysis.kafka.log_part import LogPart
from txn_analysis.kafka.names import BINARY_VERIFIED
from txn_analysis.reading.text.section import IsInPart, no_part
from txn_analysis.tables import INPUTS, LOG_PIECES
from txn_analysis.tables.inputs import ReadSection  # noqa: TC001 the fields of a record are read when it runs

if TYPE_CHECKING:
    from txn_analysis.reading.text.section import Section
    from txn_analysis.settings import Settings
    from txn_analysis.storage.warehouse import Warehouse

    _Place = tuple[str, int, int]


class _Verified(NamedTuple):
    input_id: str
    sections: tuple[ReadSection, ...]


class _Checked(NamedTuple):
    input_id: str
    last_invalid_offset: int | None


def verified_part(warehouse: Warehouse, settings: Settings) -> IsInPart:
    """Says of a segment whether it is in the part, or was found damaged on another night.

    One that was damaged is looked at in every call: else its evidence would be broken on one night a week alone.

    Raises:
        ConfigError: all parts are asked for as well.
    """
    if settings.verify_part is None:
        return no_part
    if settings.verify:
        raise ConfigError("--verify-part: --verify looks at all parts: leave one of them out")
    part, damaged = LogPart.of(settings.verify_part), _damaged(warehouse, settings.cluster)

    def is_in_part(file: Section) -> bool:
        place = file.topic, file.partition, file.file_base_offset
        return place in damaged or part.holds(*place)

    return is_in_part


def _damaged(warehouse: Warehouse, cluster: str) -> set[_Place]:
    verified = warehouse.records(_Verified, INPUTS, cluster=[cluster], grammar=[BINARY_VERIFIED])
    ids = {one.input_id for one in verified}
    checked = warehouse.records(_Checked, LOG_PIECES, input_id=ids) if ids else []
    wrong = {one.input_id for one in checked if one.last_invalid_offset is not None}
    return {
        (section.topic, section.partition, section.file_base_offset)
        for one in verified
        if one.input_id in wrong
        for section in one.sections
    }

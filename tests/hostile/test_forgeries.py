"""Lines that clients forge, in payloads, keys, header keys and transactional ids, change no verdict towards hanging."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from tests.hostile.corpus import SMALL_RANGES_BYTES
from tests.hostile.scenes import SETTINGS, TOOLS, forged_scenes, honest, key_of, named_scenes
from tests.oracle.copies import Truth
from tests.torture.harness import audit_files
from txn_analysis.settings import Settings

if TYPE_CHECKING:
    from tests.hostile.scenes import Scene
    from tests.torture.harness import Answer
    from tests.torture.inputs import InputReader

# A `Dumping` line in a payload may have to be taken for one, and so may a batch line in header keys, which have no
# size; then nothing around it is proven, and nothing is hanging.
FORGED_SECTIONS = ("a section", "a producer snapshot", "tombstones")
# Ids that make an export ambiguous: what it says of anybody is then not enough to call something hanging.
AMBIGUOUS = {"id console tombstone, console text"}


def answer_to(reader: InputReader, scene: Scene, range_bytes: int = 1 << 25) -> Answer:
    settings = Settings.model_validate({"warehouse": "none"} | SETTINGS)
    return audit_files(reader, {"capture": scene.files}, settings, range_bytes=range_bytes)


def test_the_scene_has_an_orphan_and_a_live_transaction(reader: InputReader) -> None:
    scene = honest(TOOLS["4.2 payload"])
    verdicts = {scene.truth[key_of(row)]: row["verdict"] for row in answer_to(reader, scene).findings}
    assert verdicts[Truth.HANGING] == "hanging"
    assert {Truth.LIVE, Truth.PENDING} < verdicts.keys()


def test_forged_lines_are_payload(reader: InputReader) -> None:
    for scene in forged_scenes():
        found = answer_to(reader, scene)
        assert scene.wrong(found.findings) == [], scene.name
        assert found.unaccounted_bytes == 0, scene.name
        if not scene.name.startswith(FORGED_SECTIONS) and " header, " not in scene.name:
            verdicts = {key_of(row): row["verdict"] == "hanging" for row in found.findings}
            assert verdicts == {key: truth is Truth.HANGING for key, truth in scene.truth.items()}, scene.name


def test_forged_lines_raise_nothing_where_ranges_begin_within_them(reader: InputReader) -> None:
    """Every 7th scene, so that each forgery comes in all places; `make proof` takes all of them in both sizes."""
    for number, scene in enumerate(islice(forged_scenes(), 0, None, 7)):
        found = answer_to(reader, scene, SMALL_RANGES_BYTES[number % len(SMALL_RANGES_BYTES)])
        assert scene.wrong(found.findings) == [], scene.name
        assert found.unaccounted_bytes == 0, scene.name


def test_hostile_ids_are_only_ids(reader: InputReader) -> None:
    for scene in named_scenes():
        found = answer_to(reader, scene)
        verdicts = {scene.truth[key_of(row)]: row["verdict"] for row in found.findings}
        assert scene.wrong(found.findings) == [], scene.name
        assert found.unaccounted_bytes == 0, scene.name
        assert scene.name in AMBIGUOUS or verdicts[Truth.HANGING] == "hanging", scene.name

"""Lines that clients forge, in payloads, keys, header keys and transactional ids, change no verdict towards hanging."""

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from tests.proof.hostile.corpus import SMALL_RANGES_BYTES
from tests.proof.hostile.scenes import SETTINGS, TOOLS, Scene, Truth, forged_scenes, honest, key_of, named_scenes
from tests.tools.harness import Answer, audit_each
from tests.tools.inputs import RANGE_BYTES, InputReader
from txn_analysis.settings import Settings

# A `Dumping` line in a payload may have to be taken for one, and so may a batch line in header keys, which have no
# size; then nothing around it is proven, and nothing is hanging.
FORGED_SECTIONS = ("a section", "a producer snapshot", "tombstones")
# Ids that make an export ambiguous: what it says of anybody is then not enough to call something hanging.
AMBIGUOUS = {"id console tombstone, console text"}


AT_ONCE = 40  # captures that are judged in one go


def answers_to(
    reader: InputReader, scenes: Iterable[Scene], range_bytes: int = RANGE_BYTES
) -> Iterator[tuple[Scene, Answer]]:
    settings, waiting = Settings.model_validate({"warehouse": "none"} | SETTINGS), iter(scenes)
    while some := list(islice(waiting, AT_ONCE)):
        given = [(scene.files, range_bytes) for scene in some]
        yield from zip(some, audit_each(reader, given, settings), strict=True)


def test_the_scene_has_an_orphan_and_a_live_transaction(reader: InputReader) -> None:
    ((scene, found),) = answers_to(reader, [honest(TOOLS["4.2 payload"])])
    verdicts = {scene.truth[key_of(row)]: row["verdict"] for row in found.findings}
    assert verdicts[Truth.HANGING] == "hanging"
    assert {Truth.LIVE, Truth.PENDING} < verdicts.keys()


def test_forged_lines_are_payload(reader: InputReader) -> None:
    """Every fourth scene, so that each forgery comes in some places; `make proof` takes all."""
    for scene, found in answers_to(reader, islice(forged_scenes(), 0, None, 4)):
        assert scene.wrong(found.findings) == [], scene.name
        assert found.unaccounted_bytes == 0, scene.name
        if not scene.name.startswith(FORGED_SECTIONS) and " header, " not in scene.name:
            verdicts = {key_of(row): row["verdict"] == "hanging" for row in found.findings}
            assert verdicts == {key: truth is Truth.HANGING for key, truth in scene.truth.items()}, scene.name


@pytest.mark.cluster  # all forged lines again, in small ranges
@pytest.mark.parametrize("which", range(len(SMALL_RANGES_BYTES)))
def test_forged_lines_raise_nothing_where_ranges_begin_within_them(reader: InputReader, which: int) -> None:
    """Every 13th scene, so that each forgery comes in all places; `make proof` takes all of them in both sizes."""
    scenes = islice(islice(forged_scenes(), 0, None, 13), which, None, len(SMALL_RANGES_BYTES))
    for scene, found in answers_to(reader, scenes, SMALL_RANGES_BYTES[which]):
        assert scene.wrong(found.findings) == [], scene.name
        assert found.unaccounted_bytes == 0, scene.name


def test_hostile_ids_are_only_ids(reader: InputReader) -> None:
    for scene, found in answers_to(reader, named_scenes()):
        verdicts = {scene.truth[key_of(row)]: row["verdict"] for row in found.findings}
        assert scene.wrong(found.findings) == [], scene.name
        assert found.unaccounted_bytes == 0, scene.name
        assert scene.name in AMBIGUOUS or verdicts[Truth.HANGING] == "hanging", scene.name

"""Pieces of one file that claim the same positions: those that stay are in order, and contested."""

from hypothesis import given
from hypothesis import strategies as st

from tests.tools.log_evidence import batches_of, sections_and_text, summarized
from tests.unit.log.test_copies import SHALLOW, data, log
from txn_analysis.log.segments import certain_moment_ms, rival_positions, without_rivals
from txn_analysis.tables import BatchRangeSummary

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8)


def pieces_of(spans: list[tuple[int, int]]) -> list[BatchRangeSummary]:
    (whole,) = summarized(batches_of(*sections_and_text(log(data(0)), SHALLOW), range_bytes=1_000))
    return [
        whole._replace(
            first_position=first,
            end_position=first + size,
            first_offset=first,
            text_start_bytes=number,
            max_moment_ms=number,
        )
        for number, (first, size) in enumerate(spans)
    ]


def is_overlapped(piece: BatchRangeSummary, others: list[BatchRangeSummary]) -> bool:
    return any(
        o.first_position < piece.end_position and piece.first_position < o.end_position
        for o in others
        if o.text_start_bytes != piece.text_start_bytes
    )


@given(SPANS)
def test_no_position_is_claimed_twice_by_what_stays(spans: list[tuple[int, int]]) -> None:
    pieces = pieces_of(spans)
    kept = without_rivals(pieces)
    assert not any(is_overlapped(piece, kept) for piece in kept)
    assert [p.first_position for p in kept] == sorted(p.first_position for p in kept)


@given(SPANS)
def test_what_another_piece_claims_is_contested_and_tells_no_time(spans: list[tuple[int, int]]) -> None:
    pieces = pieces_of(spans)
    contested = {p.text_start_bytes for p in without_rivals(pieces) if p.contested_offset is not None}
    alone = [p for p in pieces if not is_overlapped(p, pieces)]
    assert contested.isdisjoint(p.text_start_bytes for p in alone)
    assert len(without_rivals(pieces)) == len(alone) + len(contested)
    moments = ((p.first_position, p.end_position, p.max_moment_ms) for p in pieces)
    assert certain_moment_ms(moments) == max((p.max_moment_ms or 0 for p in alone), default=None)
    assert bool(rival_positions((p.first_position, p.end_position) for p in pieces)) == (len(alone) < len(pieces))

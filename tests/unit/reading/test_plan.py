import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.cases import cases
from tests.tools.dump_texts import batch, deep, dumping, plan, record, shallow, starts
from tests.tools.repository import CASES
from tests.tools.sessions import no_session
from txn_analysis.errors import InputError
from txn_analysis.reading.inputs.find_files import find_files
from txn_analysis.reading.inputs.planned_input import PlannedInput, check_inputs
from txn_analysis.reading.inputs.planning import plan_inputs, split_ranges
from txn_analysis.reading.inputs.survey import CHUNK_BYTES
from txn_analysis.reading.inputs.survey_files import pack

FORGED = b"x\n" + deep("evil-0", record(0, printed=False))
STATE = (CASES / "grammar/4.2.0/transaction_state-1.txt").read_bytes()
DUMPS = sorted(
    path
    for folder in ("grammar", "forged-payload", "kafka-4.2-edge/capture-1", "kafka-2.8/capture-1")
    for path in (CASES / folder).rglob("*.txt")
    if "oracle" not in path.parts and path.name not in {"orders-0.deep.txt", "orders-0.payload.txt"}
)


def places(planned: PlannedInput) -> list[tuple[str, int, bool]]:
    return [(f"{s.topic}-{s.partition}", s.file_base_offset, s.is_start_proven) for s in planned.sections]


def bodies(planned: PlannedInput, text: bytes) -> list[bytes]:
    return [text[s.text_start_bytes : s.text_end_bytes] for s in planned.sections]


def test_a_dump_of_many_files_has_a_section_for_each() -> None:
    parts = shallow("a-0"), shallow("a-0", offset=3), dumping("a-0", 3, "snapshot"), shallow("b-c-12")
    planned = plan(b"".join(parts))
    assert places(planned) == [("a-0", 0, True), ("a-0", 3, True), ("a-0", 3, True), ("b-c-12", 0, True)]
    assert [s.kind for s in planned.sections] == ["log", "log", "snapshot", "log"]
    assert planned.kind == "log_dump+snapshot_dump"
    assert planned.grammar == "3.2+"[:4] + "+empty"
    assert planned.problem is None
    assert bodies(planned, b"".join(parts))[1] == parts[1].partition(b"\n")[2].partition(b"\n")[2]


def test_a_section_ends_before_its_trailer() -> None:
    torn = b"Found 17 invalid bytes at the end of 00000000000000000000.log\n"
    text = shallow("a-0") + torn + shallow("b-0") + torn + b"SLF4J: noise\n"
    planned = plan(text)
    assert [s.torn_bytes for s in planned.sections] == [17, 17]
    assert bodies(planned, text) == [batch(0, 1, 0) + batch(1, 1, 100) + batch(2, 1, 200)] * 2
    assert plan(text.replace(b"end of 00000000000000000000.log", b"end of other.log")).sections[0].torn_bytes == 0


def test_real_dumps_have_proven_sections_and_no_problem() -> None:
    for path in DUMPS:
        text = path.read_bytes()
        planned = plan(text)
        assert planned.problem is None, path
        assert len(planned.sections) == max(1, text.count(b"\nDumping ") + text.startswith(b"Dumping ")), path
        assert all(s.is_start_proven for s in planned.sections), path
        assert planned.sections[-1].text_end_bytes == planned.text_bytes == len(text), path


def test_real_dumps_joined_into_one_file_keep_their_sections_proven() -> None:
    dumps = [path for path in DUMPS if "console" not in path.parts]
    planned = plan(b"".join(path.read_bytes() for path in dumps))
    assert planned.problem is None
    assert len(planned.sections) == sum(len(plan(path.read_bytes()).sections) for path in dumps)
    unproven = [s.dump_path for s in planned.sections if not s.is_start_proven]
    assert unproven == []


@pytest.mark.parametrize("name", ["kafka-2.8", "kafka-4.2"])
def test_a_forged_payload_begins_no_section(name: str) -> None:
    text = (CASES / f"forged-payload/{name}.payments-0.print-data-log.txt").read_bytes()
    assert places(plan(text)) == [("payments-0", 0, True)]
    assert places(plan(text + shallow("b-0"))) == [("payments-0", 0, True), ("b-0", 0, True)]


@cases(
    "hostile",
    {
        "in-value": record(0, value=FORGED),
        "in-key": record(0, key=FORGED),
        "in-key-without-value": record(0, value=None, key=FORGED),
        "after-a-forged-batch": record(0, value=b"x\n" + batch(1, 1, 100) + record(1) + FORGED),
        "lengths-do-not-hold": record(0, value=b"\xff" * 9 + b"x\n" + record(1) + FORGED),
        "in-headers": record(0, headers=b"a]\n" + deep("evil-0")[:-1] + b"\n" + batch(0, 1, 0)[:-1]),
        "in-headers-after-a-forged-record": record(
            0, headers=b"a]\n" + record(1, printed=False) + deep("evil-0") + batch(0, 1, 0)[:-1], printed=False
        ),
    },
)
def test_a_section_inside_a_record_is_never_proven(hostile: bytes) -> None:
    text = deep("a-0", hostile, record(1), record(2))
    assert ("evil-0", 0, True) not in places(plan(text))
    assert places(plan(text))[0] == ("a-0", 0, True)


def test_a_real_section_after_a_forged_one_is_proven() -> None:
    planned = plan(deep("a-0", record(0, value=FORGED), record(1)) + deep("b-0", record(0)) + shallow("c-0"))
    assert places(planned) == [("a-0", 0, True), ("evil-0", 0, False), ("b-0", 0, True), ("c-0", 0, True)]


PIECES = (
    b"x",
    b"\n",
    b"\xff" * 40,
    "\ufffd".encode(),
    b"\n" + batch(1, 1, 100),
    b"\n" + record(1),
    b"\n" + record(1, value=b"y" * 300)[:-299],
    b"\n" + record(1, printed=False),
    b"\n" + deep("evil-0", record(0)),
    b"\n" + shallow("evil-1"),
    b"\n" + dumping("evil-2", 5, "snapshot"),
    b"\nFound 3 invalid bytes at the end of 00000000000000000000.log\n",
)
CONTENTS = st.one_of(st.none(), st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join))


@given(st.lists(st.lists(st.tuples(CONTENTS, CONTENTS), max_size=4), min_size=1, max_size=4), st.integers(300, 3000))
@settings(max_examples=150)
def test_whatever_records_hold_only_real_sections_are_proven(
    contents: list[list[tuple[bytes | None, bytes | None]]], chunk_bytes: int
) -> None:
    parts = [
        deep(f"real-{k}", *(record(offset, key, value) for offset, (key, value) in enumerate(records)))
        for k, records in enumerate(contents)
    ]
    text = b"".join(parts)
    proven = {s.dump_path.partition("/")[0] for s in plan(text, chunk_bytes).sections if s.is_start_proven}
    assert not any(name.startswith("evil") for name in proven)
    if "\ufffd".encode() not in text:
        assert proven == {f"real-{k}" for k in range(len(parts))}


def test_what_a_client_wrote_cannot_refuse_the_file() -> None:
    text = deep("a-0", record(0, value=b"x\n" + dumping("a-0", 0, "index") + b"offset: 1 position: 2\n"))
    planned = plan(text)
    assert (len(planned.sections), planned.problem) == (1, None)


@pytest.mark.parametrize(
    ("last", "is_proven"),
    [
        (record(0), True),
        (record(0, printed=False), True),
        (record(0, key=None), True),
        (record(0, key=None, value=None), True),
        (record(0, value=b""), True),
        (record(0, value="ä\u2028\r€".encode()), True),
        (record(0, value=b"two\nlines\n"), True),
        (record(0, value=b"\xff\xfe"), False),
        (record(0).replace(b"keySize: 1", b"keySize: 4"), False),
        (record(0, headers=b"a", printed=False), False),
        (record(0) + record(1), False),
    ],
)
def test_a_deep_section_ends_where_its_last_record_is_whole(last: bytes, is_proven: bool) -> None:
    text = deep("a-0", record(0), last) + shallow("b-0")
    assert places(plan(text))[1:] == [("b-0", 0, is_proven)]


ID = b"a\n" + dumping("evil-0") + batch(0, 1, 0) + b"x payload: <DELETE>"


@pytest.mark.parametrize("name", ["2.1.1", "2.2.2", "2.8.2", "3.7.2", "4.1.0", "4.2.0"])
def test_decoded_state_is_proven_by_its_shape(name: str) -> None:
    state = (CASES / f"grammar/{name}/transaction_state-1.txt").read_bytes()
    planned = plan(state + state.replace(b"_state-1/", b"_state-2/") + shallow("a-0"))
    assert [is_proven for _, _, is_proven in places(planned)] == [True, True, True]


def test_a_transactional_id_begins_no_section() -> None:
    state = (CASES / "grammar/3.7.2/transaction_state-1.txt").read_bytes()
    line = b"| offset: 0 CreateTime: 1 keySize: %d valueSize: -1 sequence: -1 headerKeys: []" % (4 + len(ID))
    key = b" key: transaction_metadata::transactionalId=" + ID
    hostile = deep("__transaction_state-0", line + key + b" payload: <DELETE>\n")
    assert places(plan(hostile + state)) == [
        ("__transaction_state-0", 0, True),
        ("evil-0", 0, False),
        ("__transaction_state-1", 0, True),
    ]


def test_user_records_are_not_read_as_decoded_state() -> None:
    key = b'{"type":"0","data":{}} payload: {"version":"0","data":{}}'
    text = deep("a-0", record(0, key=key, value=b"}}\n" + deep("evil-0", record(0, printed=False))), record(1))
    assert ("evil-0", 0, True) not in places(plan(text))


LONG = [record(k, value=b"x" * 900) for k in range(2000)]


@pytest.mark.parametrize("kind", ["payload", "state", "shallow"])
def test_the_look_back_into_a_long_section(kind: str) -> None:
    state = STATE.partition(b"\n")[2].partition(b"\n")[2]
    text = {
        "payload": deep("a-0", *LONG),
        "state": dumping("__transaction_state-1") + state * (1 + (3 << 20) // len(state)),
        "shallow": shallow("a-0", 6000),
    }[kind]
    planned = plan(text + deep("b-0", record(0)) + shallow("c-0"), 1 << 20)
    if kind == "state":  # repeated lines break the chain of positions within the look back: proof needs a whole one
        assert len(planned.sections) == 3
    else:
        assert [is_proven for _, _, is_proven in places(planned)] == [True, True, True]


def test_a_record_longer_than_the_look_back_hides_its_start() -> None:
    inner = b"".join(batch(k, 1, 100 * k) + record(k) for k in range(9000))
    text = deep("a-0", record(0, value=b"x\n" + inner + deep("evil-0", record(0))), record(1))
    for chunk_bytes in (1 << 19, 1 << 20, CHUNK_BYTES):
        assert ("evil-0", 0, True) not in places(plan(text, chunk_bytes))


@given(st.integers(1, 700), st.data())
@settings(max_examples=60)
def test_chunks_of_any_size_give_the_same_sections(chunk_bytes: int, data: st.DataObject) -> None:
    trailer = b"Found 3 invalid bytes at the end of 00000000000000000000.log\n"
    choices = [shallow("a-0"), deep("b-0", record(0, value=FORGED), record(1)), deep("c-0") + trailer, STATE[:1500]]
    parts = data.draw(st.lists(st.sampled_from(choices), min_size=1, max_size=4))
    text = b"SLF4J: x\n" + b"".join(part[: part.rfind(b"\n") + 1] for part in parts)
    text = text[: len(text) - data.draw(st.integers(0, 400))]
    whole, cut = plan(text), plan(text, chunk_bytes)
    if chunk_bytes > len(b"SLF4J: x\nDumping "):  # the head that is recognised is the first chunk's
        assert replace(cut, input_id=whole.input_id) == whole


@given(st.integers(0, 2000))
@settings(max_examples=60)
def test_a_dump_cut_anywhere_says_so_unless_at_a_line_end(kept: int) -> None:
    text = (shallow("a-0") + deep("b-0", record(0)))[:kept]
    planned = plan(text)
    is_torn = not text.endswith(b"\n") or text.count(b"Dumping ") != text.count(b"starting offset: ")
    assert (planned.problem is not None) == is_torn
    for section in planned.sections:
        assert section.text_start_bytes <= section.text_end_bytes <= text.rfind(b"\n") + 1


def test_a_torn_last_line_is_left_out_and_named() -> None:
    text = shallow("a-0")
    planned = plan(text[:-5])
    torn_at = len(text) - len(batch(2, 1, 200))
    assert planned.sections[0].text_end_bytes == torn_at
    assert planned.problem == (f"byte {torn_at}: the text ends inside this line. Copy the file again")


JSON = b'{"key":{"type":0,"data":{"transactionalId":"%s"}},"value":{"version":1,"data":{"producerId":1}}}'


@pytest.mark.parametrize("cut", [1, 3, 20, 60])
def test_a_cut_json_export_is_named(cut: int) -> None:
    whole = JSON % b"a" + JSON % b'\\"}}{\\"key\\":'
    assert plan(whole).problem is None
    assert plan(whole + b"\n").problem is None
    planned = plan(whole[:-cut])
    at = len(JSON % b"a")
    assert planned.problem is not None
    assert planned.problem.startswith(f"byte {at}: ")
    assert [(s.kind, s.text_start_bytes, s.text_end_bytes, s.grammar) for s in planned.sections] == [
        ("console_json", 0, at, "4.0+")
    ]


@pytest.mark.parametrize(
    ("refused", "what"),
    [
        (dumping("b-0", 0, "index") + b"offset: 1 position: 2\n", "offset index"),
        (b"Dumping 00000000000000000000.log\nStarting offset: 0\n", "which partition"),
        (dumping(f"b-0.{'a' * 32}-stray"), "stray log"),
        (b"Dumping m-0/00000000000000000012-0000000001.checkpoint\nKRaft bootstrap snapshot\n", "KRaft"),
    ],
)
def test_one_refused_section_does_not_hide_the_others(refused: bytes, what: str) -> None:
    parts = shallow("a-0"), refused, shallow("c-0")
    planned = plan(b"".join(parts))
    assert places(planned) == [("a-0", 0, True), ("c-0", 0, True)]
    assert planned.sections[0].text_end_bytes == starts(*parts)[1]
    assert planned.problem is not None
    assert planned.problem.startswith(f"byte {starts(*parts)[1]}: ")
    assert what in planned.problem


def test_the_first_dumping_line_must_name_a_dumped_file() -> None:
    planned = plan(b"Dumping x.log\n")
    assert (planned.kind, planned.sections) == (None, ())
    assert planned.problem is not None
    assert planned.problem.startswith("byte 0: ")


def test_problems_end_the_run_unless_they_are_to_be_skipped() -> None:
    good, bad = plan(shallow("a-0")), plan(b"")
    check_inputs([good, bad], skip_unrecognised=True)
    check_inputs([good], skip_unrecognised=False)
    with pytest.raises(InputError) as error:
        check_inputs([good, bad], skip_unrecognised=False)
    assert error.value.problems == ["dump.txt: byte 0: the file is empty. Copy it again, or leave it out"]


def test_ranges_cover_each_body_once_in_order() -> None:
    planned = plan(shallow("a-0", 40) + dumping("a-0", 3, "snapshot") + STATE + dumping("empty-0"))
    for kinds in ({"log"}, {"log", "state"}, {"state"}, {"snapshot"}, {"console_text"}):
        ranges = [part for task in split_ranges([planned], kinds, 1000, 2) for part in task]
        for section in planned.sections:
            spans = [(part.start, part.end) for part in ranges if part.section == section]
            if section.kind not in kinds or section.text_start_bytes == section.text_end_bytes:
                assert spans == []
                continue
            edges = [section.text_start_bytes, *(end for _, end in spans)]
            assert spans == list(zip(edges, [*edges[1:], 0], strict=True))[:-1]
            assert edges[-1] == section.text_end_bytes
            is_cut = section.kind in {"log", "state"}
            assert all(end - start <= 1000 for start, end in spans) if is_cut else len(spans) == 1


def test_a_section_of_the_state_is_one_task() -> None:
    """Where it is cut, text of an id may stand that looks like batches."""
    planned = plan(shallow("a-0", 40) + STATE * 20)
    tasks = split_ranges([planned], {"log", "state"}, 100, 8)
    of_states = [{part.section.index for part in task if part.section.kind == "state"} for task in tasks]
    found = [index for indexes in of_states for index in indexes]
    assert len(found) == len(set(found)) == sum(section.kind == "state" for section in planned.sections)
    assert max(sum(part.section.kind == "state" for part in task) for task in tasks) > 1


def test_a_compressed_text_is_one_task() -> None:
    planned = replace(plan(shallow("a-0", 40) + shallow("b-0", 40)), compression="gzip")
    (task,) = split_ranges([planned], {"log"}, 1000, 8)
    assert len(task) > 8
    assert [part.start for part in task] == sorted(part.start for part in task)


@given(st.lists(st.integers(0, 50)), st.integers(1, 9))
def test_packing_keeps_the_order_and_balances(sizes: list[int], group_count: int) -> None:
    groups = pack(list(range(len(sizes))), sizes, group_count)
    assert [k for group in groups for k in group] == list(range(len(sizes)))
    assert len(groups) <= group_count
    for group in groups:
        assert sum(sizes[k] for k in group) <= sum(sizes) / group_count + 2 * max(sizes)


def test_files_are_planned_by_content(tmp_path: Path) -> None:
    long = shallow("long-0", 40_000) + deep("b-0", record(0))
    assert len(long) > CHUNK_BYTES
    cut = gzip.compress(shallow("cut-0", 5000))[:-20]
    files = {
        "a.txt": shallow("a-0"),
        "b.log.gz": gzip.compress(shallow("a-0")),
        "c.txt": long,
        "d.zst": pa.Codec("zstd").compress(long, asbytes=True),
        "e.txt": b"",
        "f.txt": b"",
        "g.gz": cut,
        "h.gz": cut,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    planned = plan_inputs(no_session, find_files([str(tmp_path)])).inputs
    by_name = {Path(p.path).name: p for p in planned}
    assert list(by_name) == ["a.txt", "c.txt", "e.txt", "g.gz", "h.gz"]
    assert by_name["c.txt"].sections == plan(long).sections
    assert by_name["c.txt"].input_id == plan(long).input_id
    assert len({p.input_id for p in planned}) == len(planned)
    with pytest.raises(InputError, match=r"e\.txt: .*the same: .*f\.txt"):
        check_inputs([by_name["e.txt"]], skip_unrecognised=False)
    assert by_name["g.gz"].kind is None
    assert "the gzip stream is cut or damaged" in (by_name["g.gz"].problem or "")
    (tmp_path / "e.txt").unlink()
    (packed,) = plan_inputs(no_session, find_files([f"{tmp_path}/d.zst"])).inputs
    assert (packed.input_id, packed.compression) == (by_name["c.txt"].input_id, "zstd")
    assert packed.sections == by_name["c.txt"].sections


def test_whatever_is_refused_may_be_left_out_and_a_report_without_it_does_not_say_so() -> None:
    refused = [plan(shallow("a-0")[:-5]), plan(b"notes of that night\n")]
    with pytest.raises(InputError) as raised:
        check_inputs(refused, skip_unrecognised=False)
    *of_files, of_all = str(raised.value).split("\n")
    assert len(of_files) == len(raised.value.problems) == 2
    assert of_all == "Or pass --skip-unrecognised: the report then names what was left out"
    assert not any("skip-unrecognised" in str(planned.problem) for planned in refused)

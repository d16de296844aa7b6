import csv
import io
import json

from txn_analysis.report.formats import MINUS_ONE, Answer, Column

COLUMNS = (Column("Topic"), Column("Epoch", MINUS_ONE), Column("Start"), Column("TopicPartitions"))


def test_an_id_cannot_forge_a_row() -> None:
    text = Answer(COLUMNS[:1], (("evil\nfake\tcell\x1b[2J",),)).text()
    assert text.splitlines()[1] == "evil\\nfake\\tcell\\x1b[2J\t"


def test_csv_keeps_numbers_and_guards_formulas() -> None:
    answer = Answer(
        (Column("Id"), Column("Offset"), Column("Places")), (("=1+1,\n", -7, ["a-0", "b-1"]), (None, 0, []))
    )
    lines = list(csv.reader(io.StringIO(answer.csv())))
    assert lines == [["Id", "Offset", "Places"], ["'=1+1,\\n", "-7", "a-0,b-1"], ["", "0", ""]]


def test_ndjson_has_one_object_a_line() -> None:
    answer = Answer((Column("Id"),), (("a\nb",), (None,)))
    assert [json.loads(line) for line in answer.ndjson().splitlines()] == [{"Id": "a\nb"}, {"Id": None}]

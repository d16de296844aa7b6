"""What `doctor` finds: audits run without Java, and nowhere without a folder that can be written."""

import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema

from txn_analysis.cli.doctor import Check, Machine, machine, machine_text
from txn_analysis.questions.answers import json_text, schema_text
from txn_analysis.settings import Settings

NO_JAVA: Mapping[str, str] = {"PATH": ""}


def found(warehouse: str, env: Mapping[str, str] = NO_JAVA, master: str | None = None) -> Machine:
    return machine(Settings(warehouse=warehouse, master=master), env, "1.0.0")


def check(answer: Machine, name: str) -> Check:
    (one,) = [check for check in answer.checks if check.name == name]
    return one


def test_without_java_what_this_process_may_hold_is_audited(tmp_path: Path) -> None:
    answer = found(str(tmp_path / "warehouse"))
    assert (answer.can_audit, answer.is_spark_ready) == (True, False)
    assert check(answer, "Java").remedy is not None
    assert machine_text(answer).startswith("Audits run here, of up to ")


def test_a_java_that_spark_can_use_is_named(tmp_path: Path) -> None:
    java = tmp_path / "bin/java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.15\"' >&2\n")
    java.chmod(0o755)
    answer = found(str(tmp_path / "warehouse"), {"JAVA_HOME": str(tmp_path)})
    assert check(answer, "Java").found == f"17.0.15, {java}"
    assert answer.is_spark_ready
    assert "more by Spark's tasks" in machine_text(answer)


def test_where_the_warehouse_cannot_be_no_audit_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = found(str(tmp_path / "file"))
    assert not answer.can_audit
    assert "is not a folder" in check(answer, "warehouse").found
    assert machine_text(answer).startswith("No audit runs here: warehouse ")


def test_a_store_is_not_asked() -> None:
    assert check(found("s3://audits/warehouse"), "warehouse").found == "s3://audits/warehouse, which is not asked here"


def test_what_a_cluster_needs_beside_is_named(tmp_path: Path) -> None:
    here, cluster = found(str(tmp_path)), found("s3://audits/w", {"PYSPARK_PYTHON": "python3"}, "spark://host:7077")
    assert [missing.partition(":")[0] for missing in here.cluster] == [
        "a --warehouse that every node sees",
        "--master",
        "PYSPARK_PYTHON",
    ]
    assert cluster.cluster == ()


def test_the_json_is_of_its_schema(tmp_path: Path) -> None:
    jsonschema.validate(json.loads(json_text(found(str(tmp_path)))), json.loads(schema_text(Machine)))

"""Writes what is made in README.md and docs/: `make docs`."""

import tempfile
from pathlib import Path

from tests.tools.captures import PARAMETERS, SEGMENTS
from tests.tools.docs.asked import asked_outputs
from tests.tools.docs.examples import DOCUMENTS, outputs, with_examples
from tests.tools.docs.licences_page import licences_page
from tests.tools.docs.pages import with_tables
from tests.tools.docs.queries import PAGE, answered, two_nights
from tests.tools.repository import CASES, ROOT
from txn_analysis.cli.config_file import config_file
from txn_analysis.pipeline import steps as pipeline
from txn_analysis.runs.run_tables import run_tables
from txn_analysis.settings import Settings
from txn_analysis.spark.session import session
from txn_analysis.warehouse.opening import open_warehouse


def main() -> None:
    """Pages from the schemas and the rules first, then the outputs of commands."""
    (ROOT / "conf/audit.toml").write_text(config_file(), encoding="utf-8")
    (ROOT / "docs/licences.md").write_text(licences_page(), encoding="utf-8")
    spark = session("local[2]", "txn-analysis-docs")
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"warehouse": folder} | PARAMETERS)
        paths = [str(CASES / "kafka-4.2/capture-1" / part) for part in SEGMENTS]
        report = pipeline.audit(spark, paths, settings)
        tables = run_tables(open_warehouse(spark, folder), settings.cluster)
        found = outputs(report, tables)
        found |= asked_outputs(Path(folder) / "asked")
        two_nights(str(Path(folder) / "nights"))
        queries = answered(PAGE.read_text(encoding="utf-8"), str(Path(folder) / "nights"))
    spark.stop()
    PAGE.write_text(queries, encoding="utf-8")
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        document.write_text(with_tables(with_examples(text, found)), encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the tools of the newest Kafka print of files that brokers of 4.2, 4.3 and 4.4 wrote; no broker is started."""

import subprocess
from pathlib import Path

from tests.systems.e2e.broker import QUIET
from tests.systems.e2e.stage import STATE
from tests.tools.kafka_jars import class_path, dump_tool
from tests.tools.repository import CASES

CASE, VERSION = "tools-4.4", "4.4.0"
BROKERS = {"4.2": "kafka-4.2-rotation", "4.3": "kafka-4.3-find-hanging", "4.4": "kafka-4.4-upgrade"}
"""By the version of the brokers, the case whose first capture holds their files."""
DUMPS = {
    "state": (f"{STATE}-*/*.log", "--transaction-log-decoder"),
    "logs": ("[!_]*/*.log", "--deep-iteration"),
}
"""By the name of the text which files are dumped, and with what option."""
_EXPORT = str(Path(__file__).with_name("Export.java"))


def log_dirs(brokers: str) -> list[Path]:
    """The log directories of the brokers of one version."""
    return sorted((CASES / BROKERS[brokers] / "capture-1/log-dirs").iterdir())


def make(case: Path) -> None:
    """The whole case."""
    for brokers in BROKERS:
        (case / brokers).mkdir(parents=True)
        for name, (pattern, *options) in DUMPS.items():
            texts = [_dumped(node, pattern, options) for node in log_dirs(brokers)]
            (case / brokers / f"{name}.txt").write_text("".join(texts), encoding="utf-8")
        state = DUMPS["state"][0]
        segments = [str(file) for node in log_dirs(brokers) for file in sorted(node.glob(state))]
        (case / brokers / "console.json").write_text(_output(_EXPORT, *segments), encoding="utf-8")


def _dumped(node: Path, pattern: str, options: list[str]) -> str:
    files = sorted(node.glob(pattern))
    if not files:
        return ""
    words = ("--files", ",".join(map(str, files)))
    return _output(dump_tool(VERSION), *options, *words).replace(f"Dumping {node}/", f"Dumping {node.name}/")


def _output(*words: str) -> str:
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", *QUIET, "-cp", class_path(VERSION)]
    return subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.stubs import Library
from txn_analysis.cli.main import app


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    return Library(monkeypatch)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    path = tmp_path / "orders-0.txt"
    path.write_text("Dumping /var/kafka/orders-0/00000000000000000000.log\nLog starting offset: 0\n")
    return str(path)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], library: Library) -> Callable[..., Done]:
    """Runs `txn-analysis` with the given words, in this process and without Spark."""

    def run(*words: str) -> Done:
        with pytest.raises(SystemExit) as ended:
            app(list(words), prog_name="txn-analysis")
        code = ended.value.code
        out, err = capsys.readouterr()
        return Done(code if isinstance(code, int) else int(code is not None), out, err)

    return run

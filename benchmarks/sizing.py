"""What a large cluster's logs need, from the bench's own figures: `docs/sizing.md`.

`python -m benchmarks.sizing` writes the page anew; `--check` first makes dumps at a hundredth of its size, audits them
and keeps what that took beside what was expected.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.audits import audit
from benchmarks.batches import data_batch_bytes
from benchmarks.bench import GIB
from benchmarks.dumps import write_dumps
from benchmarks.processes import in_memory
from benchmarks.report import caveats, table, targets_table
from benchmarks.targets import NotMeasurableError, added
from benchmarks.wide import model
from txn_analysis.settings import Settings

if TYPE_CHECKING:
    from benchmarks.steps import Figures

FIGURES = Path(__file__).with_name("figures.json")
CHECK = Path(__file__).with_name("check.json")
WIDE = Path(__file__).with_name("wide.json")
PAGE = Path(__file__).parents[1] / "docs/sizing.md"

_TIB = 2**40
_PARTITIONS = 10_000
_LOG_BYTES = 10 * _TIB
_BATCH_BYTES = (1024, 4096, 16384, 65536)
_CORES = (16, 64, 256)
_CHECK_SHARE = 100
_CHECK_BATCH_BYTES = 16384

_PAGE = """# Sizing

What {partitions} partitions with {log_tib} TiB of log need. `python -m benchmarks.sizing` writes this page from
`benchmarks/figures.json` ({measured}). `make bench` measures anew.

A dump has one line for each batch. So the size of the batches decides, not that of the log.

{caveats}{needs}

Minutes are those of one audit that keeps every batch. Ranges of text share the work: more cores than ranges do nothing.
A later audit reads all bytes again, but parses and keeps only what is new.

Memory: {memory} The driver holds a row for each file and each open transaction.

## Checked

{checked}

## A wide cluster

{wide}

## Targets

{targets}
"""


@dataclass(frozen=True)
class Needs:
    """What an audit of shallow dumps needs.

    Attributes:
        text_bytes: of the dumps.
        ranges: pieces of text that are one unit of work; more cores than that have nothing to do.
        seconds: from start to end, on so many cores.
        warehouse_bytes: of the tables, every batch kept.
    """

    batches: float
    text_bytes: float
    ranges: int
    seconds: float
    warehouse_bytes: float


def needs(figures: Figures, log_bytes: float, batch_bytes: float, cores: int) -> Needs:
    """What a log needs, with everything that the bench measured growing in proportion to the dumps' text.

    Args:
        figures: of a bench.
        log_bytes: of all segments that are dumped.
        batch_bytes: the mean size of a record batch in them, end markers included.
        cores: of all executors, each as fast as those of the bench.
    """
    text_bytes = log_bytes / batch_bytes * figures["large_text_bytes"] / figures["large_batches"]
    seconds_per_byte = added(figures, "full", "{}_text_bytes", 1)
    # Not that of a tiny audit: those start faster, and run slower.
    start_s = figures["full_small_s"] - figures["small_text_bytes"] * seconds_per_byte
    range_bytes = Settings.model_fields["range_bytes"].default
    return Needs(
        batches=log_bytes / batch_bytes,
        text_bytes=text_bytes,
        ranges=math.ceil(text_bytes / range_bytes),
        seconds=start_s + text_bytes * seconds_per_byte * figures["cores"] / cores,
        warehouse_bytes=text_bytes * figures["full_large_warehouse_bytes"] / figures["large_text_bytes"],
    )


def check(partitions: int, log_bytes: int, batch_bytes: int, work: Path) -> dict[str, float]:
    """Make dumps of a log, audit them on this machine, and say what that took and what was expected."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    cores = os.cpu_count() or 1
    text_bytes = needs(figures, log_bytes, batch_bytes, cores).text_bytes
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work, prefix="sizing-") as folder:
        dumps, warehouse = Path(folder, "dumps"), Path(folder, "warehouse")
        folders = [(dumps, int(text_bytes))]
        (written,) = write_dumps(folders, partitions, batch_bytes=data_batch_bytes(batch_bytes))
        expected = needs(figures, written.log_bytes, written.log_bytes / written.batches, cores)
        with in_memory([dumps]):
            made = audit([dumps], warehouse)
        stored = sum(file.stat().st_size for file in warehouse.rglob("*") if file.is_file())
    return {
        "partitions": partitions,
        "asked_log_bytes": log_bytes,
        "asked_batch_bytes": batch_bytes,
        "log_bytes": written.log_bytes,
        "batch_bytes": written.log_bytes / written.batches,
        "cores": cores,
        "text_bytes": written.text_bytes,
        "seconds": made.seconds,
        "memory_bytes": made.process.peak_memory_bytes,
        "warehouse_bytes": stored,
        "open_transactions": made.open_transactions,
    } | {f"expected_{name}": value for name, value in asdict(expected).items()}


def page() -> str:
    """The page, from the figures of the last bench and of the last check."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    small_gib, large_gib = (figures[f"{size}_text_bytes"] / GIB for size in ("small", "large"))
    return _PAGE.format(
        partitions=f"{_PARTITIONS:,}",
        log_tib=_LOG_BYTES // _TIB,
        measured=f"{small_gib:.3g} and {large_gib:.3g} GiB of dumps on {figures['cores']:.0f} cores",
        caveats="".join(f"{paragraph}\n\n" for paragraph in caveats(figures)),
        needs=_needs_table(figures),
        memory=_memory(figures),
        checked=_checked(),
        wide=_wide(),
        targets=targets_table(figures, {}),
    )


def _needs_table(figures: Figures) -> str:
    head = ["mean batch", "batches", "dump text", "ranges", "warehouse", *[f"minutes, {c} cores" for c in _CORES]]
    try:
        rows = [_needs_row(figures, batch_bytes) for batch_bytes in _BATCH_BYTES]
    except NotMeasurableError as error:
        return f"not available: {error}"
    return table(head, rows)


def _needs_row(figures: Figures, batch_bytes: int) -> list[str]:
    on = [needs(figures, _LOG_BYTES, batch_bytes, cores) for cores in _CORES]
    text, warehouse = on[0].text_bytes / GIB, on[0].warehouse_bytes / GIB
    fixed = [f"{batch_bytes // 1024} KiB", f"{on[0].batches / 1e6:,.0f} million", f"{text:,.0f} GiB"]
    return [*fixed, f"{on[0].ranges:,}", f"{warehouse:,.0f} GiB", *[f"{each.seconds / 60:,.0f}" for each in on]]


def _memory(figures: Figures) -> str:
    small, large = (figures[f"full_{size}_memory_bytes"] / GIB for size in ("small", "large"))
    return (
        f"driver, executor and Python workers together took at most {large:.1f} GiB"
        f" ({small:.1f} GiB with the smaller input)."
    )


def _checked() -> str:
    if not CHECK.exists():
        wanted = _check_command(_PARTITIONS // _CHECK_SHARE, _LOG_BYTES // _CHECK_SHARE, _CHECK_BATCH_BYTES)
        return f"Not checked yet: `{wanted}` does it at 1/{_CHECK_SHARE} of the size."
    found = json.loads(CHECK.read_text(encoding="utf-8"))
    command = _check_command(found["partitions"], found["asked_log_bytes"], found["asked_batch_bytes"])
    about = (
        f"`{command}`: {found['log_bytes'] / GIB:.3g} GiB of log in batches of {found['batch_bytes'] / 1024:.1f} KiB"
        f" on average, {found['cores']} cores, {found['memory_bytes'] / GIB:.1f} GiB of memory at most,"
        f" {found['open_transactions']:,} open transactions found."
    )
    rows = [
        (what, f"{found[f'expected_{name}'] / unit:.3g} {of}", f"{found[name] / unit:.3g} {of}")
        for what, name, unit, of in (
            ("dump text", "text_bytes", GIB, "GiB"),
            ("warehouse", "warehouse_bytes", GIB, "GiB"),
            ("time", "seconds", 60, "minutes"),
        )
    ]
    return f"{about}\n\n{table(('what', 'expected', 'measured'), rows)}"


def _wide() -> str:
    found = json.loads(WIDE.read_text(encoding="utf-8")).get("model")
    return (
        model.section(found) if found else "Not measured yet: `python -m benchmarks.wide --scale 1 --only goal` does."
    )


def _check_command(partitions: int, log_bytes: int, batch_bytes: int) -> str:
    sizes = f"--partitions {partitions} --log-gib {log_bytes / GIB:g} --batch-bytes {batch_bytes}"
    return f"python -m benchmarks.sizing --check {sizes}"


def main() -> None:
    """Write the page, after a check if one is wanted."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.sizing", description=__doc__)
    options.add_argument("--check", action="store_true", help="make dumps, audit them, and keep the comparison")
    options.add_argument("--partitions", type=int, default=_PARTITIONS // _CHECK_SHARE)
    options.add_argument(
        "--log-gib", type=float, default=_LOG_BYTES // _CHECK_SHARE / GIB, help="of the log, not of text"
    )
    options.add_argument("--batch-bytes", type=int, default=_CHECK_BATCH_BYTES)
    options.add_argument("--work", type=Path, default=Path(tempfile.gettempdir(), "txn-analysis-bench"))
    chosen = options.parse_args()
    if chosen.check:
        found = check(chosen.partitions, int(chosen.log_gib * GIB), chosen.batch_bytes, chosen.work)
        CHECK.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

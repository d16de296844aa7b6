"""Noise in every place of the small captures, and of a seeded hundredth in all others.

A text with a line of noise in it says what it says without, or names the bytes that it does not read; never more.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.proof.part import Report, counted
from tests.tools.noisy import KINDS, Said, said
from tests.tools.repository import CASES

WHOLE = ("field", "grammar")
"""Captures of which every boundary is tried; of the others each hundredth."""
_OTHERS_PERCENT = 1


@dataclass
class NoiseReport(Report):
    """What came of the noise."""

    texts: int = counted("texts with noise tried")
    same: int = counted("that say the same", least=1)
    named: int = counted("that name what they do not read")


def run_noise(percent: int = 100, seed: int = 1) -> NoiseReport:
    """Puts each kind of noise at so many percent of the places, and compares what is read."""
    chosen, report = random.Random(seed), NoiseReport()
    for path in _captures():
        text, name = path.read_bytes(), str(path.relative_to(CASES))
        share = percent * (1 if path.relative_to(CASES).parts[0] in WHOLE else _OTHERS_PERCENT / 100) / 100
        places = [at for at in boundaries(text) if chosen.random() < share]
        if places:
            _try(name, text, places, report)
    return report


def _captures() -> Iterator[Path]:
    files = (path for path in CASES.rglob("*") if path.suffix in {".txt", ".json"} and path.is_file())
    for path in sorted(files):
        is_answer = path.name in {"scenario.json", "expected.json"} or "oracle" in path.parts
        if not is_answer:
            yield path


def boundaries(text: bytes) -> list[int]:
    """Where lines begin, and the end."""
    return [0, *(newline.end() for newline in re.finditer(rb"\n", text))]


def _try(name: str, text: bytes, places: list[int], report: NoiseReport) -> None:
    clean = said(text)
    unread = _unread(text, clean)
    for at in places:
        for kind, line in KINDS.items():
            noisy = text[:at] + line + text[at:]
            now = said(noisy)
            report.texts += 1
            is_refused = now.problem is not None and "byte " in now.problem
            if (now.problem, now.sections, _unread(noisy, now)) == (clean.problem, clean.sections, unread):
                report.same += 1
            elif is_refused or (len(_unread(noisy, now)) > len(unread) and _row_count(now) <= _row_count(clean)):
                report.named += 1
            elif not (clean.problem is not None and now.problem is not None):  # refused with and without
                report.problems.append(f"{name}, byte {at}, {kind}: rows differ, and nothing says why")


def _unread(text: bytes, of: Said) -> bytes:
    return b"".join(text[start:end] for start, end in of.unread)


def _row_count(of: Said) -> int:
    return sum(len(rows) for *_, rows in of.sections)

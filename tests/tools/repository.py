"""Where things are in this repository."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = ROOT / "data/cases"  # captures of real brokers

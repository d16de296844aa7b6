"""`python -m txn_analysis` is `txn-analysis`."""

from __future__ import annotations

from txn_analysis.cli.main import main

if __name__ == "__main__":
    main()

"""Reconstruct the transactions of an ingested capture."""

from txn_analysis.cli.steps import reconstruct

if __name__ == "__main__":
    reconstruct()

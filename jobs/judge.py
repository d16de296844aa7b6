"""Judge the open transactions of a reconstructed capture."""

from txn_analysis.cli.steps import judge

if __name__ == "__main__":
    judge()

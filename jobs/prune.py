"""Take what is old out of a warehouse."""

from txn_analysis.cli.steps import prune

if __name__ == "__main__":
    prune()

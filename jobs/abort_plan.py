"""Plan the abort markers for the hanging transactions of a judged capture, and print them for whoever sends them."""

from txn_analysis.cli.steps import abort_plan

if __name__ == "__main__":
    abort_plan()

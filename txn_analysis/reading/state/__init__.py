"""The records of `__transaction_state`: decoded dumps, console exports, segments."""

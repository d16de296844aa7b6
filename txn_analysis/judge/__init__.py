"""Judge: open transactions against the coordinator's state; facts, then rules, then a verdict."""

"""Spark: found, started, lent by somebody else, watched, interrupted."""

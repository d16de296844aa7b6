"""Whole columns at a time: arrays with NULLs, runs of equal values, compiled loops."""

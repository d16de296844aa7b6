"""Tests of `txn_analysis`."""

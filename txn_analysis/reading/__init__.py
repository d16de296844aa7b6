"""Ingest: files become rows of the input tables; plan, scan, and account for every byte."""

"""Runs: one judgement of one capture, the evidence that it rests on, and its rows as they were left."""

"""Kafka's own formats and words, as columns and typed values."""

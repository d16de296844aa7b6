"""The batches of a section: of `kafka-dump-log`, 2.0.1 to 4.4, or of a broker's own segment."""

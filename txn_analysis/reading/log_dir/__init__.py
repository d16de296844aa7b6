"""A broker's own files: segments, producer snapshots, transaction indexes, checkpoints."""

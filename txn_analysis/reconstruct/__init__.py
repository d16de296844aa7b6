"""Reconstruct: batches fold into pieces, pieces and snapshots link into the state of each partition."""

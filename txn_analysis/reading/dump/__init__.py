"""The text of `kafka-dump-log`, 2.0.1 to 4.4: batch lines, end markers, snapshots."""

"""The text of `kafka-dump-log`, 2.1 to 4.3: batch lines, end markers, snapshots."""

"""Tables on a disk of this machine: Parquet and Delta's log, written and read without Java."""

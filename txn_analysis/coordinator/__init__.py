"""The second source of truth: `__transaction_state`, its records, its histories, and how much of it was seen.

Pure: no file, no Spark. It knows nothing of the partitions' logs but the end markers that test it.
"""

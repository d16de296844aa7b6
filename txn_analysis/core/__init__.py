"""The pure core: what is read of files, judged in memory, without Spark and without files.

The same functions that Spark's tasks and its driver call, in the same order. Whoever proves the rules does it here: by
the thousand, in seconds.
"""

"""The audit as its steps: ingest, reconstruct, judge, plan, report; in this process or in Spark's tasks.

The one room that brings rows and rules together: it reads and writes tables, and calls `reading`, `log`, `coordinator`,
`judge` and `plan`, which know of no table's place and of no Spark.
"""

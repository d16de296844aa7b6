"""Tables in a store that only Spark reads and writes, and the tasks that fill tables."""

"""The pure core: what is read of files, judged in memory, without Spark and without files."""

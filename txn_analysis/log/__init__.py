"""The first source of truth: the partition's log. Batches are summed up, put together, and followed to what is open.

Pure: no file, no Spark. It knows nothing of the coordinator.
"""

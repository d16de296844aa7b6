"""Questions about finished runs: the verbs that ask, answered from tables, without Spark where they lie on a disk."""

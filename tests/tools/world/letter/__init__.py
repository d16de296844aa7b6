"""The contract's rules once more, told from its text alone: what the copies of a small world come to.

Independent of the judge: no module here shares a function with it. One copy of each log, no snapshots; the records of
the state in dumps, or in a console export.
"""

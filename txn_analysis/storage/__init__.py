"""The tables of a warehouse, written and read: one interface, on a disk of this machine or by Spark."""

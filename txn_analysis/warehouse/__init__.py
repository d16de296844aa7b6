"""The tables of a warehouse, written and read on a disk of this machine or in a store, with Spark or without."""

"""The steps for inputs that are too many to be held: Spark moves rows, its tasks call the same pure functions."""

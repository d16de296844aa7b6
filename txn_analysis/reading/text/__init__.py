"""The bytes of an input, read in windows, and the sections that they fall into."""

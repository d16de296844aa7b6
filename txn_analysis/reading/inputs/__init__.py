"""What the files of a call are, which parts of them are read by whom, and whether every byte was."""

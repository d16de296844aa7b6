"""What a client's text cannot forge: which lines of a dump with payloads are the tool's own."""

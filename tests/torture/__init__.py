"""Torture: evidence is taken away, mixed and reshuffled by the thousand, and no verdict may become wrong by it."""

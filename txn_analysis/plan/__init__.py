"""What to do about a hanging transaction: the abort plan, its renderings, and what became of it."""

"""What to do about a hanging transaction: the abort plan and its renderings."""

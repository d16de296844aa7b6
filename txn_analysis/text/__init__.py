"""Text for people: moments, sizes and plurals, and what comes from evidence, made safe to show."""

"""Slow and obvious twins of what the package does fast, written from the rules alone."""

"""Rule books: one package a game, on NumPy and Numba alone."""

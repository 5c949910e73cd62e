"""The Numba backend."""

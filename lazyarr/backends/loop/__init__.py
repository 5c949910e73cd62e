"""The loop family: graphs to loops, for the C and Numba printers."""

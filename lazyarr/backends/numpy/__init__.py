"""NumPy as a backend of the array family: the example of a backend in one folder."""

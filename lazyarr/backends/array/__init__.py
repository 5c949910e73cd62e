"""The array family: a graph becomes a straight-line Python program over an array namespace."""

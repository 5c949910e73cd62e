"""The checks that need no checkout, made from the facts of the standard."""

"""Passes from graph to graph: fold, algebra, stabilize, loops, composites, and their one order."""

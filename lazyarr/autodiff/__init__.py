"""Derivatives, graph from graph: reverse mode, forward mode and batching."""

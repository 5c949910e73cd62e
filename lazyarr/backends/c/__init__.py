"""C: one header-less file per graph, a compiler found at run time, a fast launcher."""

"""How a graph runs: the driver, and a folder for each backend."""

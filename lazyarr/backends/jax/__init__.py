"""JAX as a backend of the array family."""

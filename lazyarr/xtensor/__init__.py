"""Named dimensions: the type, its inference and its lowering, and the labels of dimensions."""

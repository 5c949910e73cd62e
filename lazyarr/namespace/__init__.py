"""The face: handles, functions, transforms and loops that users call."""

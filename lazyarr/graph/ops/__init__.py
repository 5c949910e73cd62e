"""The catalogue: importing it declares every op, chapter by chapter of the standard."""

from lazyarr.graph.ops import (  # noqa: F401
    complex_numbers,
    composed,
    control,
    creation,
    decompositions,
    elementwise,
    fft,
    foreign,
    gammas,
    indexing,
    linalg,
    manipulation,
    norms,
    random,
    ruled,
    searching,
    sorting,
    special,
    statistical,
    transcendental,
)

"""Parts of complex numbers. Source: Array API standard 2025.12, elementwise functions.

Cotangents are those of the holomorphic convention while a graph is differentiated: for z = x + iy
they are df/dx - i df/dy, so that products need no conjugate; the public transforms conjugate at the
end.
"""

import numpy as np

from lazyarr.graph import scalar as s
from lazyarr.graph.node import Variable
from lazyarr.graph.ops._declare import elementwise
from lazyarr.graph.registry import op


def conjugate(x: Variable) -> Variable:
    """Record the conjugate of a value; a real one stays as it is."""
    return op.conj(x) if x.type.dtype.kind == "c" else x


def _embedded(g, x):
    """A real cotangent as one of a complex operand."""
    return op.astype(g, x.type.dtype) if x.type.dtype.kind == "c" else g


elementwise(
    "conj",
    formula=s.conj,
    reference=np.conjugate,
    accepts="numeric",
    vjp=lambda g, y, x: (conjugate(g),),
    jvp="linear",
    since="2022.12",
    doc="The complex conjugate; a real array itself.",
)
elementwise(
    "real",
    formula=s.real,
    reference=lambda x: np.array(np.real(x)),
    accepts="numeric",
    result="real",
    vjp=lambda g, y, x: (_embedded(g, x),),
    jvp="linear",
    since="2022.12",
    doc="The real part; a real array itself.",
)
elementwise(
    "imag",
    formula=s.imag,
    reference=lambda x: np.array(np.imag(x)),
    accepts="numeric",
    result="real",
    vjp=lambda g, y, x: (op.multiply(_embedded(g, x), -1j) if x.type.dtype.kind == "c" else None,),
    jvp="linear",
    since="2022.12",
    doc="The imaginary part; zeros for a real array.",
)

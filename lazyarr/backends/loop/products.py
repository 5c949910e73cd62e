"""Which contractions are products of matrices, or of a matrix and a vector, as BLAS has them."""

from collections.abc import Callable
from dataclasses import dataclass

from lazyarr.graph.node import Variable

GEMM_LEAST = 12  # a matrix product with a static side below this is a loop of its own


@dataclass(frozen=True)
class Product:
    """out[batch, row, column] = sum over inner of left * right; no column: right is a vector."""

    left: Variable
    right: Variable
    left_labels: tuple
    right_labels: tuple
    batch: tuple
    row: int
    inner: int
    column: int | None


def transposed(x: Variable, labels: tuple, stored: Callable) -> tuple[Variable, tuple]:
    """Look through transposes of something stored: the operand before them, and its labels."""
    while not stored(x) and x.op is not None and x.op.name == "permute_dims":
        axes = x.params["axes"]
        labels = tuple(labels[axes.index(d)] for d in range(len(axes)))
        x = x.inputs[0]
    return x, labels


def matrix_product(a: Variable, b: Variable, la: tuple, lb: tuple, lo: tuple) -> Product | None:
    """Return a contraction as a product of matrices, None where it is something else."""
    if len({*la}) != len(la) or len({*lb}) != len(lb):
        return None
    both = [label for label in lo if label in la and label in lb]
    n = len(both)
    if any(tuple(labels[:n]) != tuple(both) for labels in (la, lb, lo)):
        return None
    ra, rb, ro = set(la[n:]), set(lb[n:]), tuple(lo[n:])
    inner = ra & rb
    if len(inner) != 1 or (ra | rb) - inner != set(ro):
        return None
    if ro and ro[0] in rb:  # out = (b, a): exchange the operands
        a, b, la, lb, ra, rb = b, a, lb, la, rb, ra
    if len(ra) != 2 or len(rb) not in (1, 2) or (len(rb) == 1 and both):
        return None
    column = ro[1] if len(rb) == 2 else None
    return Product(a, b, tuple(la), tuple(lb), tuple(both), ro[0], inner.pop(), column)

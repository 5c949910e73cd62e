"""Graphs that between them use every rule and builder of the loop family, with their inputs."""

from collections.abc import Callable, Sequence

import numpy as np

import lazyarr.graph.ops  # noqa: F401 (declares the ops)
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import op
from lazyarr.graph.shapes import Size, unknown
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType

N, M, K = unknown("n"), unknown("m"), unknown("k")
VALUES = {N: 5, M: 4, K: 3}
Case = tuple[Graph, list[np.ndarray]]


def leaf(*shape: object, dtype: str = "float64") -> Variable:
    """A symbol of a shape."""
    return symbol(TensorType(dtype, shape))


def sample(v: Variable, seed: int) -> np.ndarray:
    """Values for a leaf: normal floats, small integers, coins."""
    rng = np.random.default_rng(seed)
    shape = tuple(VALUES[s] if isinstance(s, Size) else s for s in v.shape)
    if v.dtype.kind == "f":
        return np.asarray(rng.normal(size=shape), v.dtype)
    if v.dtype.kind == "b":
        return np.asarray(rng.random(shape) > 0.5)
    return np.asarray(rng.integers(0, 3, size=shape), v.dtype)


def case(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Case:
    """A graph with sampled inputs."""
    return Graph(inputs, outputs), [sample(v, k) for k, v in enumerate(inputs)]


def elementwise() -> Case:
    x, y, s = leaf(N, M), leaf(M), leaf()
    return case([x, y, s], [op.exp(x) * y + 1, op.tanh(x) * s, op.exp(s) + op.exp(s)])


def softmax() -> Case:
    x = leaf(N, M)
    e = op.exp(x - op.max(x, axis=1, keepdims=True))
    return case([x], [e / op.sum(e, axis=1, keepdims=True)])


def reductions() -> Case:
    x, b = leaf(N, M), leaf(N, M, dtype="bool")
    sums = [op.sum(x, axis=0), op.sum(x, axis=1), op.sum(x), op.prod(x, axis=0)]
    return case([x, b], [*sums, op.all(b, axis=0), op.any(b), op.sum(b, axis=1), op.var(x, axis=0)])


def extremes() -> Case:
    x, i = leaf(N, M), leaf(N, M, dtype="int32")
    args = [op.argmax(x, axis=1), op.argmin(x, axis=0), op.argmax(x), op.argmin(i, axis=1)]
    graph, (a, b) = case([x, i], [*args, op.max(x, axis=1), op.min(x, axis=0), op.max(i, axis=0)])
    a[1, 2], a[2], a[3, 0], a[0, 0] = np.nan, -np.inf, np.inf, -0.0
    return graph, [a, b]


def products() -> Case:
    x, w, y = leaf(N, M), leaf(M, K), leaf(M)
    t = op.permute_dims(x, (1, 0))
    return case(
        [x, w, y],
        [op.matmul(x, w), op.matmul(x, y), op.matmul(t, op.sum(x, axis=1)), op.vecdot(y, y)],
    )


def library_products() -> Case:
    """Products of all layouts, batched, symmetric, with vectors, of computed operands."""
    x, w, v, u, b = leaf(N, M), leaf(M, K), leaf(M), leaf(N), leaf(2, N, M)
    t = op.permute_dims(x, (1, 0))
    batched = op.matmul(b, op.permute_dims(b, (0, 2, 1)))
    return case(
        [x, w, v, u, b],
        [
            op.matmul(op.permute_dims(w, (1, 0)), t),
            op.matmul(t, x), op.matmul(x, t),
            op.matmul(x * 2, op.tanh(w)), op.matmul(x, op.exp(v)), op.matmul(u, x * 3),
            op.matmul(t, u - 1), batched, op.matmul(b, w), op.matmul(b, v),
        ],
    )  # fmt: skip


def static_products() -> Case:
    x, w = leaf(N, 3), leaf(3, 4)
    return case([x, w], [op.matmul(x, w), op.matmul(op.permute_dims(x, (1, 0)), x)])


def gathers() -> Case:
    x, i = leaf(N, M), leaf(K, dtype="int64")
    return case([x, i], [op.take(x, i, axis=1), op.take(op.exp(x), i, axis=0) * 2])


def scatters() -> Case:
    x, y, i = leaf(N, M), leaf(M), leaf(K, dtype="int64")
    added = op.take_add(op.zeros(y.shape), i, op.take(y, i, axis=0), axis=0)
    columns = op.take_set(x, i, op.take(x, i, axis=1) * 2, axis=1)
    return case([x, y, i], [added, columns, op.take_add(x, i, op.take(x, i, axis=0), axis=0)])


def regions() -> Case:
    x, y = leaf(N, M), leaf(M)
    row = {"spec": (("int",), ("slice", 1)), "lengths": (M,)}
    both = op.add_at(op.set_at(x, y * 2, 1, 0, **row), y, 2, 0, **row)
    return case([x, y], [op.set_at(x, y, 0, 0, **row), both])


def cumulative() -> Case:
    x = leaf(N, M)
    started = op.cumulative_sum(x, axis=0, include_initial=True)
    return case([x], [op.cumulative_sum(x, axis=1), started, op.cumulative_prod(x, axis=1)])


def joins() -> Case:
    x = leaf(N, M)
    two = op.concat([x, x * 2], axis=0)
    return case([x], [two, op.concat([x, op.exp(x)], axis=1), op.stack([x, x + 1], axis=1) + 1])


def movement() -> Case:
    x, j = leaf(N, M), leaf(dtype="int64")
    picked = [op.basic_index(x, (slice(1, None), slice(None, None, -1))), op.basic_index(x, (j,))]
    flat = op.reshape(op.permute_dims(x, (1, 0)), (N * M,))
    return case([x, j], [op.flip(x, axis=1) + x, *picked, flat, op.sum(op.reshape(x * 2, (-1,)))])


def same_again() -> Case:
    x = leaf(N, M)
    return case([x], [x, op.reshape(x, (M, N)), x + 0.0, x])


def transposed_with_itself() -> Case:
    x = leaf(M, M)
    both = x + op.permute_dims(x, (1, 0))
    return case([x], [both, op.sum(both, axis=0), op.trace(x)])


def float32() -> Case:
    f = leaf(N, M, dtype="float32")
    return case([f], [op.exp(f) * 3.5, op.sum(f), op.max(f, axis=0), op.astype(f, "int32")])


def integers() -> Case:
    i, u = leaf(N, M, dtype="int32"), leaf(N, dtype="uint8")
    divided = [op.floor_divide(i, i - 1), op.remainder(i, i - 1), op.pow(i, i)]
    return case([i, u], [i * i + 1, *divided, op.sum(u), op.sum(i, axis=0), -i, op.abs(i), u - 1])


def creation() -> Case:
    y = leaf(M)
    numbers = [op.arange(0, M) * y, op.arange(0.5, 4.0, 0.5), op.full((M, 3), op.sum(y))]
    return case([y], [*numbers, op.zeros((0, 3)), op.tril(op.ones((M, M)) * y), op.size_value(M)])


def broadcasts() -> Case:
    y, z = leaf(M), leaf(N)
    column = op.expand_dims(z, axis=1)
    return case([y, z], [op.exp(y) * column, op.sum(op.exp(column - y), axis=0)])


def linear_algebra() -> Case:
    a, b = leaf(K, K), leaf(K)
    factor = op.cholesky(a)
    solved = [op.solve_triangular(factor, b), op.solve_triangular(factor, a, trans=True)]
    graph, (x, y) = case([a, b], [factor, *solved, op.solve_triangular(a, a, lower=False)])
    return graph, [x @ x.T + 3 * np.eye(3), y]


def systems() -> Case:
    a, b, v = leaf(K, K), leaf(K, M), leaf(K)
    many = op.stack([a, a + 1.0], axis=0)
    graph, (x, y, z) = case(
        [a, b, v],
        [op.solve(a, b), op.solve(a, v), op.inv(a), op.det(a), op.inv(many), op.det(many),
         op.solve(many, op.expand_dims(b, axis=0))],
    )  # fmt: skip
    return graph, [x + 3 * np.eye(len(x)), y, z]


def scan(
    inputs: Sequence[Variable],
    body: Sequence[Variable],
    given: Sequence[Variable],
    **params: object,
) -> list[Variable]:
    """Every output of a scan."""
    node = op.scan(Graph(inputs, body), tuple(given), **params)
    return [op.pick(node, i) for i in range(len(node.type.types))]


def scalar_scan(reverse: bool = False) -> Case:
    c, x, a = leaf(), leaf(), leaf()
    given = [leaf(), leaf(N), leaf()]
    body = [c * a + op.sin(x), c * 2 + x]
    out = scan([c, x, a], body, given, length=N, reverse=reverse, n_carry=1, n_xs=1)
    return case(given, [*out, op.sum(out[1])])


def swapping_scan() -> Case:
    c, d, x, a = leaf(M), leaf(M), leaf(M), leaf(M, M)
    given = [leaf(M), leaf(M), leaf(N, M), leaf(M, M)]
    new = op.matmul(a, c) * 0.1 + x
    body = [d, new + d, new, op.sum(c), c]
    out = scan([c, d, x, a], body, given, length=N, reverse=False, n_carry=2, n_xs=1)
    return case(given, out)


def hmm() -> Case:
    alpha, emission, moves = leaf(3), leaf(3), leaf(3, 3)
    given = [leaf(3), leaf(N, 3), leaf(3, 3)]
    v = op.expand_dims(alpha, axis=1) + moves
    top = op.max(v, axis=0)
    new = top + op.log(op.sum(op.exp(v - top), axis=0)) + emission
    params = {"length": N, "reverse": False, "n_carry": 1, "n_xs": 1}
    return case(given, scan([alpha, emission, moves], [new], given, **params))


def nested_scan() -> Case:
    c, x, ic, ix = leaf(), leaf(K), leaf(), leaf()
    params = {"reverse": False, "n_carry": 1, "n_xs": 1}
    inner = scan([ic, ix], [ic * 0.5 + ix, ic + 1], [c, x], length=K, **params)
    given = [leaf(), leaf(N, K)]
    return case(given, scan([c, x], [*inner, op.sum(inner[1])], given, length=N, **params))


def history_scan() -> Case:
    h, t = leaf(M), leaf(dtype="int64")
    value = op.sum(h) * 0.5 + 1
    new = op.set_at(h, value, t, spec=(("int",),), lengths=())
    start = leaf(M)
    params = {"length": M, "reverse": False, "n_carry": 1, "n_xs": 1}
    return case([start], scan([h, t], [new, value], [start, op.arange(M)], **params))


def shifting_scan() -> Case:
    """Carries that are updated in place from themselves and from each other."""
    c, d, t = leaf(M), leaf(M), leaf(dtype="int64")
    tail = op.basic_index(c, (slice(1, None),))
    first = op.set_at(c, tail, 0, spec=(("slice", 1),), lengths=(M - 1,))
    new_c = op.add_at(first, op.sum(d) + op.sum(c), t, spec=(("int",),), lengths=())
    new_d = op.set_at(d, c, 0, spec=(("slice", 1),), lengths=(M,))
    given = [leaf(M), leaf(M)]
    params = {"length": M, "reverse": False, "n_carry": 2, "n_xs": 1}
    out = scan([c, d, t], [new_c, new_d, c + d], [*given, op.arange(M)], **params)
    return case(given, out)


def walked_parts() -> Case:
    """Loops over what a step computes by itself: parts, flips, counters, cheap values."""
    c, e, row, i, twice, whole = leaf(), leaf(), leaf(M), leaf(dtype="int64"), leaf(), leaf(M)
    start, x, xs, last = leaf(), leaf(N), leaf(N, M), leaf(N, M)
    part = op.basic_index(op.concat([xs, last]), (slice(1, N + 1),))
    walked = [op.flip(x, axis=0), part, op.multiply(op.arange(N), 2), x * 2.0 + 1.0]
    params = {"length": N, "reverse": False}
    ic, ix = leaf(), leaf()
    inner = scan([ic, ix], [ic * 0.5 + ix], [c, row], length=M, reverse=False, n_carry=1, n_xs=1)
    body = [inner[0] + e + twice, op.sum(row * whole) + i, op.take(row, op.full((2,), 1))]
    given = [start, *walked, op.flip(last, axis=0)]
    out = scan([c, e, row, i, twice, whole], body, given, **params, n_carry=1, n_xs=5)
    return case([start, x, xs, last], out)


def joined_stacks() -> Case:
    """Stacks that loops leave where they are joined, or copy there: reshaped, an output, twice."""
    c, e, start, x = leaf(), leaf(), leaf(), leaf(N)
    params = {"length": N, "n_carry": 1, "n_xs": 1}
    row = op.stack([c, e])
    out = scan([c, e], [c * 0.5 + e, c, e * c, row], [start, x], reverse=True, **params)
    first = op.expand_dims(start, axis=0)
    joined = op.concat([first, out[1], x, out[2]])
    again = op.concat([out[2], first])
    rows = op.concat([out[3], out[3], op.reshape(out[3], (N, 2))])
    back = scan([c, e], [c + e, c * e], [start, op.basic_index(joined, (slice(N),))],
                reverse=True, **params)  # fmt: skip
    return case([start, x], [out[0], out[2], joined * 2.0, again, rows, *back])


def complex_numbers() -> Case:
    x, y = leaf(N, M), leaf(M)
    z = op.add(op.astype(x, "complex128"), op.multiply(op.astype(y, "complex128"), 1j))
    parts = [op.real(z * z), op.imag(op.conj(z)), op.abs(z), op.sum(z, axis=0), op.sum(z)]
    chosen = op.where(op.greater(x, 0), z, op.divide(z, 2 + 1j))
    return case([x, y], [*parts, chosen, op.cumulative_sum(z, axis=1), op.contract(
        z, op.conj(z), ((0, 1), (2, 1), (0, 2)))])  # fmt: skip


def sorting() -> Case:
    x, i, v = leaf(N, M), leaf(N, dtype="int32"), leaf(K)
    falling = [op.sort(x, axis=0, descending=True), op.argsort(i, descending=True)]
    found = op.search_sorted(op.sort(op.reshape(x, (-1,))), v, side="right")
    return case([x, i, v], [op.sort(x), op.argsort(x, axis=0), *falling, found])


def decompositions() -> Case:
    x, y = leaf(2, K, K), leaf(N, K)
    u, s, vh = picks(op.svd(y, full_matrices=False))
    q, r = picks(op.qr(y))
    w, v = picks(op.eigh(op.add(x, op.matrix_transpose(x))))
    whole = [op.matmul(op.multiply(u, s), vh), op.matmul(q, r), op.abs(v), w]
    return case([x, y], [*whole, op.svdvals(y), *picks(op.slogdet(x)), op.abs(op.eigvals(x))])


def transforms() -> Case:
    x, y = leaf(N, M), leaf(N, M)
    z = op.add(op.astype(x, "complex128"), op.multiply(op.astype(y, "complex128"), 1j))
    out = [op.fourier(z, (0, 1), False, "ortho"), op.fourier(z, (1,), True, "forward")]
    return case([x, y], [*out, op.fourier_half(x, 0, "backward"), op.irfft(z, axis=1)])


CASES: dict[str, Callable[[], Case]] = {
    f.__name__: f
    for f in (
        elementwise, softmax, reductions, extremes, products, library_products,
        static_products, gathers, scatters,
        regions, cumulative, joins, movement, same_again, transposed_with_itself, float32,
        integers, creation, broadcasts, linear_algebra, systems, scalar_scan, swapping_scan, hmm,
        nested_scan, history_scan, shifting_scan, walked_parts, joined_stacks, complex_numbers,
        sorting, decompositions, transforms,
    )
}  # fmt: skip
CASES["scalar_scan_backwards"] = lambda: scalar_scan(reverse=True)

"""Batching of what reads and writes by position: `take`, scatters, regions with batched starts.

Where the indices are batched, the batch axis joins the indexed one (an array of n rows for each
element becomes one of size * n rows), and n times the batch number is added to the indices.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.op import Op
from lazyarr.graph.ops.indexing import gather, read_region, region_shape
from lazyarr.graph.registry import op


def fronted(x: Variable, axis: int) -> Any:
    """Return x with an axis moved to the front."""
    if axis == 0:
        return x
    return op.permute_dims(x, (axis, *(i for i in range(x.ndim) if i != axis)))


def widened(x: Variable, moved: bool, size: object) -> Any:
    """Return an operand with the batch axis, repeated along it when it has none."""
    return x if moved else op.broadcast_to(x, (size, *x.shape))


# -- one axis by an array of indices ---------------------------------------------------------------


def _rows(x: Variable, axis: int) -> Any:
    """The batch axis and an axis of the element as one, in front of the others."""
    y = op.permute_dims(x, (0, axis + 1, *(i for i in range(1, x.ndim) if i != axis + 1)))
    return op.reshape(y, (y.shape[0] * y.shape[1], *y.shape[2:]))


def _joint(indices: Variable, n: object, size: object) -> Any:
    """Batched indices as row numbers of `_rows`."""
    offsets = op.multiply(op.arange(size), n)
    return op.add(indices, op.reshape(offsets, (size, *(1,) * (indices.ndim - 1))))


def taken(source: tuple[Any, bool], places: tuple[Any, bool], axis: int, size: object) -> Any:
    """Record `take` where source, places or both are batched; axis is that of the element."""
    (x, x_moved), (indices, moved) = source, places
    if not moved:
        return gather(x, indices, axis + 1)
    if not x_moved:
        return fronted(gather(x, indices, axis), axis)
    out = gather(_rows(x, axis), _joint(indices, x.shape[axis + 1], size), 0)
    before = indices.ndim  # where the axes before the indexed one are now
    order = (0, *range(before, before + axis), *range(1, before), *range(before + axis, out.ndim))
    return op.permute_dims(out, order) if axis else out


def written(
    record: Op, operands: Sequence[Any], moved: Sequence[bool], axis: int, size: object
) -> Any:
    """Record `take_set` or `take_add` where any of (x, indices, v) is batched."""
    x, indices, v = operands
    x, v = widened(x, moved[0], size), widened(v, moved[2], size)
    if not moved[1]:
        return record.record((x, indices, v), {"axis": axis + 1})
    n, rank = x.shape[axis + 1], indices.ndim - 1
    if axis:
        first, last = axis + 1, axis + 1 + rank
        v = op.permute_dims(v, (0, *range(first, last), *range(1, first), *range(last, v.ndim)))
    out = record.record((_rows(x, axis), _joint(indices, n, size), v), {"axis": 0})
    out = op.reshape(out, (size, n, *out.shape[1:]))
    return op.permute_dims(out, (0, *range(2, axis + 2), 1, *range(axis + 2, out.ndim)))


def _take(node: Variable, args: list[Any], moved: list[bool], size: object) -> Any:
    x, indices = zip(args, moved, strict=True)
    return taken(x, indices, node.params["axis"], size)


def _scatter(node: Variable, args: list[Any], moved: list[bool], size: object) -> Any:
    return written(node.op, args, moved, node.params["axis"], size)


# -- regions --------------------------------------------------------------------------------------


def positions(
    maps: Sequence[Any],
    source: tuple[Any, ...],
    region: tuple[Any, ...],
    starts: Mapping[Any, Any],
    size: object,
) -> tuple[Any, bool]:
    """Return the places of a region in the flattened source, and whether they are batched.

    `maps` says what each source axis reads (see `AxisMap`); `starts` maps a start that is a
    Variable to what it is after batching.
    """
    total: Any = None
    stride: Any = 1
    fixed: Any = 0
    moved = any(starts[m.start][1] for m in maps if m.start in starts)
    for m, n in zip(reversed(maps), reversed(source), strict=True):
        terms = []
        if m.start in starts:
            start, by_batch = starts[m.start]
            terms.append(op.reshape(start, (size, *(1,) * len(region))) if by_batch else start)
        else:
            fixed = fixed + m.start * stride
        if m.out_axis is not None:
            along = [1] * len(region)
            along[m.out_axis] = region[m.out_axis]
            steps = op.multiply(op.arange(region[m.out_axis]), m.step)
            terms.append(op.reshape(steps, tuple(along)))
        for term in terms:
            term = op.multiply(term, stride)
            total = term if total is None else op.add(total, term)
        stride = stride * n
    shape = (size, *region) if moved else region
    if total is None:
        return op.full(shape, fixed, dtype="int64"), moved
    return op.broadcast_to(op.add(total, fixed), shape), moved


def _flat(x: Variable, moved: bool) -> Any:
    """An operand with the axes of its elements as one."""
    if moved:
        return op.reshape(x, (x.shape[0], shapes.product(x.shape[1:])))
    return op.reshape(x, (shapes.product(x.shape),))


def by_index_map(node: Variable, args: list[Any], moved: list[bool], size: object) -> Any:
    """Record any movement with an index map as one `take` of the flattened operand."""
    n_starts = len(node.inputs) - 1
    after = zip(args[len(args) - n_starts :], moved[len(moved) - n_starts :], strict=True)
    starts = {
        v: pair for v, pair in zip(node.inputs[1:], after, strict=True) if v.__class__ is Variable
    }
    source = node.inputs[0].shape
    where = positions(node.op.index(node), source, node.shape, starts, size)
    return taken((_flat(args[0], moved[0]), moved[0]), where, 0, size)


def indexed(node: Variable, args: list[Any], moved: list[bool], size: object) -> Any:
    """Read a region whose starts are batched; a single such axis by indices along it."""
    batched = [i for i, m in enumerate(moved[1:]) if m]
    if len(batched) > 1:
        return by_index_map(node, args, moved, size)
    (axis,) = batched
    spec, lengths, starts = list(node.params["spec"]), list(node.params["lengths"]), args[1:]
    place = [i for i, e in enumerate(spec) if e[0] != "new"][axis]
    out_axis = sum(e[0] != "int" for e in spec[:place])
    taking = [k for k, e in enumerate(spec[:place]) if e[0] == "slice"]
    indices = starts[axis]
    if spec[place][0] == "slice":
        steps = op.multiply(op.arange(lengths[len(taking)]), spec[place][1])
        indices = op.add(op.expand_dims(indices, axis=1), steps)
        lengths.pop(len(taking))
    spec[place] = ("slice", 1)
    lengths.insert(len(taking), node.inputs[0].shape[axis])
    starts = [0 if i == axis else s for i, s in enumerate(starts)]
    x = args[0]
    if moved[0]:
        spec, lengths, starts = [("slice", 1), *spec], [size, *lengths], [0, *starts]
    region = read_region(x, tuple(spec), tuple(lengths), tuple(starts))
    return taken((region, moved[0]), (indices, True), out_axis, size)


def _write_region(node: Variable, args: list[Any], moved: list[bool], size: object) -> Any:
    x, v = (widened(a, m, size) for a, m in zip(args[:2], moved[:2], strict=True))
    spec, lengths = node.params["spec"], node.params["lengths"]
    if not any(moved[2:]):
        params = {"spec": (("slice", 1), *spec), "lengths": (size, *lengths)}
        return node.op.record((x, v, 0, *args[2:]), params)
    region = read_region(node.inputs[0], spec, lengths, node.inputs[2:])
    pairs = zip(node.inputs[2:], zip(args[2:], moved[2:], strict=True), strict=True)
    starts = {old: pair for old, pair in pairs if old.__class__ is Variable}
    shape = region_shape(spec, lengths)
    where, _ = positions(region.op.index(region), node.shape, shape, starts, size)
    write = op.take_add if node.op.name == "add_at" else op.take_set
    out = written(write, (_flat(x, True), where, v), (True, True, True), 0, size)
    return op.reshape(out, (size, *node.shape))


BATCH_INDEXING: dict[str, Callable[..., Any]] = {
    "take": _take,
    "take_set": _scatter,
    "take_add": _scatter,
    "set_at": _write_region,
    "add_at": _write_region,
}

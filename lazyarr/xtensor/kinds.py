"""INFER: how the dims of a result follow from those of the operands, one rule a kind.

A named node holds the op and the parameters of a positional one; axes count in the operand's own
order of dims. dtypes, sizes and their errors come from the op's positional inference.
"""

import sys
import warnings
from pathlib import Path

from lazyarr.errors import DimError
from lazyarr.graph.op import Op
from lazyarr.graph.types import TensorType, Type
from lazyarr.xtensor.types import INFER, XTensorType

_PACKAGE = str(Path(__file__).resolve().parent.parent)


class DimNameWarning(UserWarning):
    """Two dimensions of one expression have names one typing error apart."""


# -- what the rules share -------------------------------------------------------------------------


def is_array(t: object) -> bool:
    """Tell an operand's type from the class of a raw number."""
    return not isinstance(t, type)


def is_named(t: object) -> bool:
    """Tell whether an operand has dimension names."""
    return getattr(t, "named", False)


def positional(t: object) -> object:
    """Return the operand type without names."""
    return t.positional if is_named(t) else t


def named_as(t: TensorType, dims: tuple) -> XTensorType:
    """Return a positional type with names."""
    return XTensorType(t.dtype, dims, t.shape)


def agree(dim: str, a: object, b: object) -> object:
    """Return the size of a dimension that has size a in one operand and b in another.

    Known sizes must be equal, also when one is 1; an unknown one takes the known (checked at run
    time).
    """
    if a is b or a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        raise DimError(
            f"dimension {dim!r} has size {a} in one operand and {b} in another; "
            "a named dimension of size 1 does not broadcast either: select or rename it."
        )
    return a if isinstance(a, int) else b if isinstance(b, int) else a


def joined_sizes(types: tuple) -> dict[str, object]:
    """Return the sizes of all dims of the operands, in order of first appearance."""
    sizes: dict[str, object] = {}
    for t in types:
        if not is_array(t):
            continue
        if not t.named:
            _refuse_positional(t, types)
            continue
        _warn_near(sizes, t.dims)
        for dim, size in zip(t.dims, t.shape, strict=True):
            sizes[dim] = agree(dim, sizes[dim], size) if dim in sizes else size
    return sizes


def _refuse_positional(t: TensorType, types: tuple) -> None:
    if t.ndim:
        other = next(x.dims for x in types if is_named(x))
        shown = ", ".join(["..."] * t.ndim)
        raise DimError(
            f"an array of shape {t.shape} without names meets one with dims {other}; "
            f"name its axes with XTensor(a, dims=({shown},))."
        )


def _warn_near(known: dict, dims: tuple) -> None:
    """Warn when an operand brings a dim that looks like another one mistyped."""
    for new in dims:
        for old in known:
            if new not in known and old not in dims and looks_mistyped(old, new):
                warnings.warn(
                    f"dimensions {old!r} and {new!r} meet in one expression; "
                    "is one of them a typing error?",
                    DimNameWarning,
                    stacklevel=outside(),
                )


def outside() -> int:
    """The stack level of the first caller outside the package, as `warnings.warn` counts."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def looks_mistyped(a: str, b: str) -> bool:
    """Tell whether two names are one edit inside a word apart.

    Short names, numbered ones and those that differ in their first or last letter are often meant.

    >>> looks_mistyped("city", "ctiy"), looks_mistyped("obs1", "obs2"), looks_mistyped("x", "y")
    (True, False, False)
    """
    if min(len(a), len(b)) < 4:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    p, q = a[start : len(a) - end], b[start : len(b) - end]
    if not (p + q).isalpha():
        return False
    if len(p) == len(q) == 1:
        return start > 0 and end > 0
    return len(p) + len(q) == 1 or (len(p) == 2 and p == q[::-1])


# -- the kinds ------------------------------------------------------------------------------------


def _infer_elementwise(op: Op, types: tuple, params: dict) -> Type:
    sizes = joined_sizes(types)
    scalars = tuple(TensorType(t.dtype, ()) if is_array(t) else t for t in types)
    dtype = op.infer(op, scalars, params).dtype
    return XTensorType(dtype, tuple(sizes), tuple(sizes.values()))


def kept_dims(dims: tuple, axis: tuple, keepdims: bool) -> tuple:
    """Return the dims left by a reduction over axes."""
    return dims if keepdims else tuple(d for i, d in enumerate(dims) if i not in axis)


def _infer_reduction(op: Op, types: tuple, params: dict) -> Type:
    out = op.infer(op, (types[0].positional,), params)
    return named_as(out, kept_dims(types[0].dims, params["axis"], params["keepdims"]))


def _infer_cumulative(op: Op, types: tuple, params: dict) -> Type:
    return named_as(op.infer(op, (types[0].positional,), params), types[0].dims)


def _infer_creation(op: Op, types: tuple, params: dict) -> Type:
    """A creation function has no dims; its operands are scalars."""
    return op.infer(op, tuple(map(positional, types)), params)


def _infer_contraction(op: Op, types: tuple, params: dict) -> Type:
    names: dict[int, str] = {}
    sizes: dict[str, object] = {}
    for labels, t in zip(params["spec"], types, strict=False):
        if not t.named:
            _refuse_positional(t, types)
            continue
        for label, dim, size in zip(labels, t.dims, t.shape, strict=True):
            if names.setdefault(label, dim) != dim:
                raise DimError(f"dimension {names[label]!r} cannot be paired with {dim!r}.")
            sizes[dim] = agree(dim, sizes[dim], size) if dim in sizes else size
    out = op.infer(op, tuple(map(positional, types)), params)
    dims = tuple(names[label] for label in params["spec"][2])
    return XTensorType(out.dtype, dims, tuple(sizes[d] for d in dims))


def _infer_indexing(op: Op, types: tuple, params: dict) -> Type:
    if op.name not in INDEXING:
        raise DimError("does not take named arrays; update them with x.at[...].set(v) or .add(v).")
    return INDEXING[op.name](op, types, params)


def _infer_take(op: Op, types: tuple, params: dict) -> Type:
    """The indexed dim gives its place to the dims of the indices."""
    x, idx = types
    axis = params["axis"]
    if not x.named:
        raise DimError(f"an array of shape {x.shape} without names cannot be indexed by name.")
    if not idx.named and idx.ndim > 1:
        raise DimError(f"indices of shape {idx.shape} have no names; use XTensor(i, dims=...).")
    new = idx.dims if idx.named else x.dims[axis : axis + idx.ndim]
    out = op.infer(op, (x.positional, positional(idx)), params)
    return named_as(out, (*x.dims[:axis], *new, *x.dims[axis + 1 :]))


def _infer_library(op: Op, types: tuple, params: dict) -> Type:
    if "along_axis" in op.facts and sum(map(is_array, types)) == 1:
        return named_as(op.infer(op, (types[0].positional,), params), types[0].dims)
    raise DimError("works on matrices; say which dimensions are rows and columns with dims=(a, b).")


def _infer_control(op: Op, types: tuple, params: dict) -> Type:
    raise DimError("does not take named arrays yet; pass x.data and name the result.")


def follows_axis(op: Op, types: tuple, params: dict) -> bool:
    """Tell whether a composite works along axes of its only array."""
    return "axis" in params and sum(map(is_array, types)) == 1


def _infer_composite(op: Op, types: tuple, params: dict) -> Type:
    if "positional" in op.facts:
        raise DimError("pairs axes by position; for named arrays use xp.dot(a, b, dim=...).")
    plain = tuple(map(positional, types))
    if "dims_of_first" in op.facts:
        out = op.infer(op, plain, params)
        return named_as(out, types[0].dims) if is_named(types[0]) else out
    if follows_axis(op, types, params):
        dims = kept_dims(types[0].dims, params["axis"], params.get("keepdims", True))
        return named_as(op.infer(op, plain, params), dims)
    return op.infer(op, types, params)  # the expansion, by name


# -- movement -------------------------------------------------------------------------------------


def _no_names(op: Op, types: tuple, params: dict) -> tuple:
    raise DimError(
        "does not say which dimensions its result has; use a method of XTensor (expand_dims, "
        "broadcast_like, stack, ...), or x.data and XTensor(result, dims=...)."
    )


def _same_dims(op: Op, types: tuple, params: dict) -> tuple:
    return types[0].dims


def _index_dims(op: Op, types: tuple, params: dict) -> tuple:
    if ("new",) in params["spec"]:
        return _no_names(op, types, params)
    pairs = zip(types[0].dims, params["spec"], strict=True)
    return tuple(d for d, entry in pairs if entry[0] == "slice")


MOVED_DIMS = {
    "with_dims": lambda op, types, params: params["dims"],
    "permute_dims": lambda op, types, params: tuple(types[0].dims[i] for i in params["axes"]),
    "squeeze": lambda op, types, params: kept_dims(types[0].dims, params["axis"], False),
    "flip": _same_dims,
    "specify_shape": _same_dims,
    "basic_index": _index_dims,
}


def _infer_movement(op: Op, types: tuple, params: dict) -> Type:
    if op.name in JOINS:
        return JOINS[op.name](op, types, params)
    dims = MOVED_DIMS.get(op.name, _no_names)(op, types, params)
    return named_as(op.infer(op, tuple(map(positional, types)), params), dims)


def _infer_concat(op: Op, types: tuple, params: dict) -> Type:
    """Arrays of the same dims in any order; off the joined dim their sizes agree."""
    first = types[0]
    for t in types:
        if not t.named or set(t.dims) != set(getattr(first, "dims", ())):
            raise DimError(f"cannot join {first!r} and {t!r}: they need the same dims.")
    joined = first.dims[params["axis"]]
    sizes = first.sizes
    for t in types[1:]:
        for dim, size in t.sizes.items():
            sizes[dim] = sizes[dim] + size if dim == joined else agree(dim, sizes[dim], size)
    return XTensorType(first.dtype, first.dims, tuple(sizes.values()))


JOINS = {
    "concat": _infer_concat,
    "drop_dims": lambda op, types, params: types[0].positional,
}
INDEXING = {"take": _infer_take}

INFER.update(
    elementwise=_infer_elementwise,
    reduction=_infer_reduction,
    cumulative=_infer_cumulative,
    movement=_infer_movement,
    creation=_infer_creation,
    indexing=_infer_indexing,
    contraction=_infer_contraction,
    library=_infer_library,
    control=_infer_control,
    composite=_infer_composite,
)

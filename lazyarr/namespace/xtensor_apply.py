"""`apply_ufunc`: functions of positional arrays applied by name, the extension point.

>>> import lazyarr as xp
>>> x = xp.XTensor([[1.0, 5.0], [2.0, 4.0]], dims=("city", "day"))
>>> apply_ufunc(lambda a: xp.max(a, axis=-1), x, input_core_dims=[["day"]]).values
array([5., 4.])
"""

from collections.abc import Callable, Mapping, Sequence

from lazyarr.config import options
from lazyarr.errors import ArgumentError, DimError
from lazyarr.namespace.vectorize import vectorize as vectorized
from lazyarr.namespace.xtensor import XTensor, as_xtensor
from lazyarr.namespace.xtensor_join import align
from lazyarr.xtensor import moving
from lazyarr.xtensor.coords import Coords
from lazyarr.xtensor.joining import merge


def apply_ufunc(
    func: Callable, *args: object, input_core_dims=None, output_core_dims=((),),
    exclude_dims: object = frozenset(), join: str = "exact", keep_attrs: bool | None = None,
    kwargs: Mapping | None = None, vectorize: bool = False,
):  # fmt: skip
    """Return a function of lazy positional arrays applied by name.

    func: gets each array with its core dims last and the others broadcast before them, and uses
    `lazyarr` as its array library; with `vectorize=True` it gets core dims only, and is recorded
    once for all elements of the others. input_core_dims, output_core_dims: the names of the core
    dims of each argument and result. Results are XTensors, a tuple of them for several.
    """
    given = [as_xtensor(a) if hasattr(a, "dims") else a for a in args]
    core = input_core_dims or [()] * len(args)
    if len(core) != len(args):
        raise ArgumentError(f"input_core_dims has {len(core)} entries for {len(args)} arguments.")
    excluded = frozenset(exclude_dims)  # type: ignore[call-overload]
    moved = iter(align([x for x in given if isinstance(x, XTensor)], join, tuple(excluded)))
    given = [next(moved) if isinstance(x, XTensor) else x for x in given]
    named = [x for x in given if isinstance(x, XTensor)]
    sizes = _loop_sizes(given, core)
    found = _called(func, given, core, tuple(sizes), vectorize, kwargs or {})
    many = found if isinstance(found, tuple) else (found,)
    if len(many) != len(output_core_dims):
        raise DimError(
            f"the function returned {len(many)} arrays, expected {len(output_core_dims)}."
        )
    keep = options.keep_attrs if keep_attrs is None else keep_attrs
    coords = merge([x._coords.without_dim(*excluded) for x in named], "override")
    names = {x.name for x in named}
    name = named[0].name if keep else names.pop() if len(names) == 1 else None
    attrs = named[0]._attrs if keep else None
    results = tuple(
        _output(out, (*sizes, *dims), coords, name, attrs)
        for out, dims in zip(many, output_core_dims, strict=True)
    )
    return results[0] if len(output_core_dims) == 1 else results


def _loop_sizes(given: Sequence, core: Sequence[Sequence[str]]) -> dict[str, object]:
    """The dims that are no core dims of an argument that has them, in order of appearance."""
    sizes: dict[str, object] = {}
    for x, own in zip(given, core, strict=True):
        if isinstance(x, XTensor):
            for d in own:
                x.get_axis_num(d)
            sizes.update({d: s for d, s in x.sizes.items() if d not in own and d not in sizes})
    return sizes


def _called(
    func: Callable,
    given: Sequence,
    core: Sequence[Sequence[str]],
    loop: tuple,
    one_by_one: bool,
    kwargs: Mapping,
) -> object:
    """What the function returns, with the loop dims in front."""
    pairs = list(zip(given, core, strict=True))
    if not one_by_one:
        args = [_positional(x, c, loop) if isinstance(x, XTensor) else x for x, c in pairs]
        return func(*args, **kwargs)
    args = [_own(x, c, loop).data if isinstance(x, XTensor) else x for x, c in pairs]

    def call(*values: object) -> object:
        return func(*values, **kwargs)

    for d in reversed(loop):
        has = [isinstance(x, XTensor) and d in x.dims and d not in c for x, c in pairs]
        call = vectorized(call, in_axes=tuple(0 if h else None for h in has))
    return call(*args)


def _own(x: XTensor, core: Sequence[str], loop: tuple) -> XTensor:
    """The array with the loop dims that it has, then its core dims."""
    own = [d for d in loop if d in x.dims and d not in core]
    return x._of(moving.transpose(x._v, (*own, *core)), None)


def _positional(x: XTensor, core: Sequence[str], loop: tuple) -> object:
    """The array with the loop dims, those that it lacks as axes of size 1, then its core dims."""
    x = _own(x, core, loop)
    own = [d for d in loop if d in x.dims and d not in core]
    first = loop.index(own[0]) if own else len(loop)
    missing = {d: 1 for d in loop[first:] if d not in own}
    node = moving.expand(x._v, missing) if missing else x._v
    return x._of(moving.transpose(node, (*loop[first:], *core)), None).data


def _output(out: object, dims: tuple, coords: Coords, name: object, attrs: object) -> XTensor:
    shape = out.sizes  # type: ignore[attr-defined]
    if len(shape) != len(dims):
        raise DimError(
            f"the function returned an array with {len(shape)} axes for the dims {dims}; name its "
            "own with output_core_dims=[[...]]."
        )
    handle = XTensor(out, dims=dims)
    kept = coords.within(dims).where(
        lambda k, c: all(handle.sizes[d] == n for d, n in zip(c.dims, c.shape, strict=True))
    )
    return handle._of(handle._v, kept, name, attrs)

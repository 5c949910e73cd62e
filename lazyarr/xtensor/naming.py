"""The two ops between positional and named types: `with_dims` and `drop_dims`.

Both leave the elements where they are, so lowering removes them.
"""

from lazyarr.errors import DimError
from lazyarr.graph.node import Variable
from lazyarr.graph.op import AxisMap
from lazyarr.graph.ops._declare import declare, variable_of
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType
from lazyarr.xtensor.types import XTensorType, as_dims

NAMING = frozenset({"naming"})


def _identity(node: Variable) -> tuple:
    return tuple(AxisMap(i) for i in range(node.ndim))


def _restore(g: Variable, x: Variable) -> Variable:
    """A cotangent in the type family of x."""
    return op.with_dims(g, x.type.dims) if x.type.named else unnamed(g)


@declare(
    "movement",
    infer=lambda types, params: XTensorType(types[0].dtype, params["dims"], types[0].shape),
    reference=lambda x, *, dims: x,
    index=_identity,
    vjp=lambda g, y, x, *, dims: (_restore(g, x),),
    jvp="linear",
    facts=NAMING,
    public=False,
)
def with_dims(x, dims, /):
    """The array with names for its axes, in place of any that it has."""
    x, dims = variable_of(x), as_dims(dims)
    if len(dims) != x.ndim:
        raise DimError(
            f"an array of shape {x.shape} has {x.ndim} axes, dims {dims} name {len(dims)}."
        )
    return (x,), {"dims": dims}


@declare(
    "movement",
    infer=lambda types, params: TensorType(types[0].dtype, types[0].shape),
    reference=lambda x: x,
    index=_identity,
    vjp=lambda g, y, x: (_restore(g, x),),
    jvp="linear",
    facts=NAMING,
    public=False,
)
def drop_dims(x, /):
    """The array without names, its axes in their order."""
    return (variable_of(x),), {}


def unnamed(x: Variable) -> Variable:
    """Return a positional view of a Variable, which may be positional already."""
    return op.drop_dims(x) if x.type.named else x

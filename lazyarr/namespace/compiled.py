"""`function`: expressions of symbols, compiled into a callable on arrays.

Inputs and outputs are pytrees. Values come in as NumPy arrays, numbers, or, for named inputs, as
`xr.DataArray`s and XTensors; results are fresh NumPy arrays, and `xr.DataArray`s for named outputs.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lazyarr.backends.driver import Program
from lazyarr.backends.implicit import compute_nodes
from lazyarr.errors import ArgumentError, DTypeError, GraphError, ShapeError, near_match
from lazyarr.graph import shapes
from lazyarr.graph.node import Variable
from lazyarr.graph.node import symbol as make_symbol
from lazyarr.graph.traverse import Graph, substitute
from lazyarr.graph.types import TensorType
from lazyarr.namespace.array import Array, unwrap
from lazyarr.namespace.foreign_export import CFunction, as_namespace, export_c, with_rules
from lazyarr.namespace.foreign_jitted import as_numba
from lazyarr.namespace.foreign_native import as_native
from lazyarr.namespace.functions import asarray
from lazyarr.namespace.state import Cell, Shared, cells_below
from lazyarr.namespace.tree import CONTAINERS, flatten, unflatten
from lazyarr.namespace.xtensor import XTensor


class Input:
    """One array argument of a compiled function."""

    def __init__(self, handle: object, label: str):
        node = unwrap(handle)
        if node.__class__ is not Variable or not node.is_symbol:
            raise GraphError(
                f"input {label} is not a symbol but {handle!r}; make inputs with `symbol`."
            )
        self.node, self.type, self.label = node, node.type, node.name or label
        self.dtype = getattr(node.type, "dtype", None)  # types from outside may have none
        self.ndim = getattr(node.type, "ndim", None)
        self.plain = isinstance(node.type, TensorType) and not node.type.named

    def __getstate__(self) -> dict:
        return {**self.__dict__, "node": None}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.dtype = self.type.dtype  # NumPy's own, not a copy

    def _fits(self, shape: tuple) -> bool:
        """Tell whether a shape has the rank and the known sizes of this input."""
        sizes = self.type.shape
        return len(shape) == self.ndim and all(
            isinstance(s, shapes.Size) or s == n for s, n in zip(sizes, shape, strict=True)
        )

    def convert(self, value: object) -> np.ndarray:
        """Return a value as an array of this input's type, or raise an error that names it."""
        if self.plain and value.__class__ is np.ndarray and value.dtype is self.dtype:
            if value.shape == self.type.shape or self._fits(value.shape):
                return value
        inner = getattr(value, "_v", None)
        if inner is not None:
            if isinstance(value, Array):
                value = compute_nodes([inner])[0]
            elif self.plain:
                raise ArgumentError(
                    f"input {self.label!r} is positional, got an XTensor; pass x.data."
                )
        try:
            return self.type.filter(value)
        except Exception as error:
            raise type(error)(f"input {self.label!r}: {error}") from None


class Function:
    """A compiled function; `explain()`, `fallbacks()` and `source` show what it became.

    It can be pickled, and loads without lowering again.
    """

    def __init__(
        self,
        inputs: object,
        outputs: object,
        backend: str | None = None,
        givens: Sequence = (),
        updates: Sequence = (),
        trust: bool = False,
        donate: Sequence = (),
    ):
        top = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        flat, self.in_tree = flatten(top)
        self.names = [getattr(unwrap(h), "name", None) if is_leaf(h) else None for h in top]
        self.inputs = [Input(h, str(i)) for i, h in enumerate(flat)]
        results, self.out_tree = flatten(outputs)
        targets, changed = _state_changes(updates)
        nodes = [output_node(h) for h in (*results, *changed)]
        if givens:
            nodes = substitute(nodes, {unwrap(a): unwrap(b) for a, b in givens})
        self.cells = cells_below(nodes, [i.node for i in self.inputs])
        graph = Graph([*(i.node for i in self.inputs), *self.cells], nodes)
        check_inputs(graph)
        self.donated = _places(donate, self.inputs)
        self.program = Program(graph, backend or "auto", donated=self.donated)
        self.trust = trust
        self.cells = list(self.cells.values())
        self.targets = targets
        self.templates = [_template(h) for h in results]
        self.flat = all(is_leaf(h) for h in top)
        self.single = self.out_tree.kind is None and self.templates[0] is None
        self._shorten()

    def __getstate__(self) -> dict:
        return {**self.__dict__, "fast": None}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._shorten()

    def _shorten(self) -> None:
        """Find the shortest way to call, and whether it takes `out=`."""
        self.fast = self._launcher()
        known = self.fast is not None and self.program.takes_out
        self.fast_out = known and "out" not in self.names

    def _launcher(self) -> Callable | None:
        """The shortest way to call, for flat positional inputs and unnamed flat outputs."""
        plain = self.flat and all(i.plain for i in self.inputs)
        if not plain or any(t is not None for t in self.templates) or self.cells or self.targets:
            return None
        flat = all(c.kind is None for c in self.out_tree.children)
        if self.out_tree.kind in (list, tuple) and flat:
            return self.program.launcher(self.out_tree.kind.__name__, self._call, self.trust)
        return self.program.launcher("single", self._call, self.trust) if self.single else None

    def __call__(self, *args: object, **kwargs: object):
        """Compute the outputs for values of the inputs, given in order or by name.

        `out=` gives arrays of the results' dtypes and shapes, in the structure of the outputs, to
        write the results into; they are then what is returned. None stands for a new array.
        """
        if kwargs:
            short = self.fast_out and len(kwargs) == 1 and "out" in kwargs
            return self.fast(*args, **kwargs) if short else self._call(*args, **kwargs)
        return self._call(*args) if self.fast is None else self.fast(*args)

    def _takes_out(self, kwargs: dict) -> bool:
        """Tell whether `out` is given, and no input of that name."""
        return "out" in kwargs and "out" not in self.names

    def _call(self, *args: object, **kwargs: object):
        """The call that takes everything: names, pytrees, other dtypes and layouts."""
        given_out = kwargs.pop("out") if self._takes_out(kwargs) else None
        if kwargs or len(args) != len(self.names):
            args = self._bind(args, kwargs)
        if not self.flat:
            args = self._flatten(args)
        given = [self._converted(i, a) for i, a in zip(self.inputs, args, strict=True)]
        for k in self.donated:
            if not given[k].flags.writeable:
                raise ArgumentError(
                    f"input {self.inputs[k].label!r} is donated, but the array is read-only; pass "
                    "a copy, or compile without donating it."
                )
        out = self.program([*given, *(c.value for c in self.cells)])
        if self.targets:
            n = len(self.templates)
            for cell, value in zip(self.targets, out[n:], strict=True):
                cell.replace(value)
            out = out[:n]
        if given_out is not None:
            out = self._write(out, given_out)
        if self.single:
            return out[0]
        return unflatten(
            self.out_tree,
            [a if t is None else labelled(a, t) for a, t in zip(out, self.templates, strict=True)],
        )

    def _converted(self, i: Input, value: object) -> np.ndarray:
        """Return an argument as an array of its input's type; trusted arrays as they are."""
        if self.trust and i.plain and value.__class__ is np.ndarray:
            return value
        return i.convert(value)

    def _write(self, results: list, out: object) -> list:
        """Write results into the arrays of `out=`, and return those."""
        if any(t is not None for t in self.templates):
            raise ArgumentError("out= takes arrays, but this function returns labelled results.")
        targets = _matching(out, self.out_tree, "out")
        places = [f"out[{k}]" if len(targets) > 1 else "out" for k in range(len(targets))]
        for place, result, target in zip(places, results, targets, strict=True):
            _check_target(place, result, target)
        arrays = [t for t in targets if t is not None]
        for k, one in enumerate(arrays):
            if any(np.may_share_memory(one, other) for other in arrays[:k]):
                raise ArgumentError("out: two results cannot share memory.")
        for result, target in zip(results, targets, strict=True):
            if target is not None:
                target[...] = result
        return [r if t is None else t for r, t in zip(results, targets, strict=True)]

    def _bind(self, args: Sequence, kwargs: dict) -> list:
        """Return arguments in order, from positional ones and those given by name."""
        names = self.names
        bound = list(args)
        for name in names[len(args) :]:
            if name not in kwargs:
                raise ArgumentError(f"missing input {name!r}; the inputs are {names}.")
            bound.append(kwargs.pop(name))
        if kwargs or len(args) > len(names):
            extra = next(iter(kwargs), f"number {len(args)}")
            hint = near_match(str(extra), [n for n in names if n])
            raise ArgumentError(f"unexpected input {extra!r}; the inputs are {names}.{hint}")
        return bound

    def _flatten(self, args: Sequence) -> list:
        found: list = []
        for i, (value, tree) in enumerate(zip(args, self.in_tree.children, strict=True)):
            found.extend(_matching(value, tree, f"argument {i}"))
        return found

    def explain(self) -> str:
        """Return what the function became: passes, steps, kernels, buffers, fallbacks."""
        return self.program.explain()

    def fallbacks(self) -> list[str]:
        """Return the operations that run by their NumPy reference on this backend."""
        return self.program.fallbacks()

    def as_jax(self, *, rules: bool = True, native: bool = False) -> Callable:
        """Return a JAX function of the same inputs, for the user's own jit, grad and vmap.

        Derivatives are lazyarr's, in reverse mode of any order; with `rules=False` JAX
        differentiates the program itself, in both modes, by its own conventions at kinks. Arrays
        are as wide as JAX's mode allows. Checks are dropped: an index is clamped. With
        `native=True` XLA calls the C program, on the CPU: reverse mode of first order, value and
        gradient of one number in one call, and a failing check is an error of XLA's.
        """
        return self._as_namespace("jax", rules, native)

    def as_torch(self) -> Callable:
        """Return a Torch function of the same inputs, through which Torch differentiates."""
        return self._as_namespace("torch")

    def _as_namespace(self, name: str, rules: bool = False, native: bool = False) -> Callable:
        if self.targets:
            raise GraphError(f"a function with updates is no {name} function: it has state.")
        graph = self.program.graph
        if native:
            run = as_native(graph)
        else:
            run = with_rules(graph) if rules else as_namespace(graph, name)

        def call(*args: object, **kwargs: object):
            if kwargs or len(args) != len(self.names):
                args = tuple(self._bind(args, kwargs))
            given = args if self.flat else self._flatten(args)
            return unflatten(self.out_tree, run([*given, *(c.value for c in self.cells)]))

        return call

    def export_c(self, folder: object, name: str = "function") -> dict:
        """Write NAME.c, NAME.h and main.c, which a C compiler builds without Python.

        Returns their paths. BLAS is not called; unknown sizes must not be 1 there.
        """
        return export_c(self.program, folder, name, self._labels())

    def as_numba(self, name: str = "function") -> Callable:
        """Return the function as one that Numba compiles, to be called within the user's own.

        Inputs are arrays, and numbers where they have no axes; results are a tuple of arrays and
        numbers, or the one result by itself. Unknown sizes must not be 1 there; a check that fails
        raises ValueError.
        """
        self._labels()
        return as_numba(self.program, name, self.single)

    def as_cfunc(self, name: str = "function") -> CFunction:
        """Return the function as a C function in memory: address, prototype, ctypes callable."""
        return CFunction(self.program, name, self._labels())

    def _labels(self) -> list[str]:
        if self.cells or self.targets:
            raise GraphError("a function with shared state has no form in C.")
        return [i.label for i in self.inputs]

    @property
    def source(self) -> str:
        """The generated code."""
        return self.program.source


def is_leaf(h: object) -> bool:
    """Tell whether a value is a handle."""
    return isinstance(h, Array | XTensor)


def _places(donate: Sequence, inputs: Sequence[Input]) -> tuple[int, ...]:
    """Return the places of donated inputs, given as symbols or by name."""
    found = []
    for item in [donate] if isinstance(donate, str) or is_leaf(donate) else donate:
        named = isinstance(item, str)
        node = None if named else unwrap(item)
        at = [k for k, i in enumerate(inputs) if (i.label == item if named else i.node is node)]
        if not at:
            names = [i.label for i in inputs]
            hint = near_match(str(item), names)
            raise ArgumentError(f"donate: {item!r} is no input; the inputs are {names}.{hint}")
        found += at
    return tuple(sorted(set(found)))


def _check_target(place: str, result: np.ndarray, target: object) -> None:
    """Raise where an array of `out=` cannot hold a result."""
    if target is None:
        return
    if not isinstance(target, np.ndarray):
        raise ArgumentError(f"{place}: expected an array or None, got {type(target).__name__}.")
    if target.dtype != result.dtype:
        raise DTypeError(f"{place}: the result has dtype {result.dtype}, the array {target.dtype}.")
    if target.shape != result.shape:
        raise ShapeError(f"{place}: the result has shape {result.shape}, the array {target.shape}.")
    if not target.flags.writeable:
        raise ArgumentError(f"{place}: the array is read-only.")


def _matching(value: object, tree, path: str) -> list:
    """Return the leaves of an argument that must have the structure of its input."""
    if tree.kind is None:
        return [value]
    if tree.kind == "none":
        return []
    if tree.kind is dict or tree.kind in CONTAINERS:
        if not isinstance(value, Mapping) or set(value) != set(tree.keys):
            have = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
            raise ArgumentError(f"{path}: expected a dict of {list(tree.keys)}, got {have}.")
        children = [value[k] for k in tree.keys]
    elif tree.keys:
        children = [getattr(value, k) for k in tree.keys]
    else:
        children = list(value)  # type: ignore[call-overload]
        if len(children) != len(tree.children):
            raise ArgumentError(
                f"{path}: expected {len(tree.children)} entries, got {len(children)}."
            )
    keys = tree.keys or range(len(children))
    return [
        leaf
        for k, v, c in zip(keys, children, tree.children, strict=True)
        for leaf in _matching(v, c, f"{path}[{k!r}]")
    ]


def _template(handle: object) -> XTensor | None:
    """Return the labels of a named result, without its expression; None for an unnamed one."""
    if not isinstance(handle, XTensor):
        return None
    return XTensor._of(make_symbol(handle._v.type), handle.coords, handle.name, handle.attrs)


def _state_changes(updates: Sequence) -> tuple[list[Cell], list]:
    """Return the cells that updates write and the expressions of their new values."""
    targets, changed = [], []
    for target, value in updates:
        if not isinstance(target, Shared):
            raise GraphError(f"updates are pairs (shared, expression); {target!r} is not shared.")
        new = output_node(value)
        if new.type is not target._v.type:
            raise GraphError(
                f"the update of {target._v.name or 'a shared array'} is {new.type}, the state "
                f"is {target._v.type}; cast or reshape it."
            )
        targets.append(target.cell)
        changed.append(value)
    if len({id(c) for c in targets}) != len(targets):
        raise GraphError("a shared array is updated twice.")
    return targets, changed


def output_node(handle: object) -> Variable:
    """Return the node of an output: a handle, or anything that `asarray` takes."""
    node = unwrap(handle)
    return node if node.__class__ is Variable else asarray(handle)._v


def check_inputs(graph: Graph) -> None:
    """Raise GraphError where outputs depend on symbols that are no inputs."""
    missing = graph.missing()
    if missing:
        names = ", ".join(f"{v.name or v.type!r} (made at {v.where_made()})" for v in missing[:5])
        raise GraphError(f"the outputs also depend on {names}; add it to the inputs.")
    if len(set(graph.inputs)) != len(graph.inputs):
        raise GraphError("an input is given twice.")


def labelled(value: np.ndarray, handle: XTensor) -> object:
    """Return a named result as `xr.DataArray`, or as an XTensor where xarray is not installed."""
    out = handle._with_value(value)
    try:
        return out.to_xarray()
    except ImportError:
        return out


def function(
    inputs: object,
    outputs: object,
    *,
    updates: Sequence = (),
    givens: Sequence = (),
    backend: str | None = None,
    trust_inputs: bool = False,
    donate: Sequence = (),
):
    """Compile outputs as a function of inputs.

    inputs: a symbol, or a list of symbols and pytrees of symbols; outputs: a pytree of expressions;
    updates: pairs (shared, new value), written after each call; givens: pairs (node, replacement);
    backend: "c", "numba", "jax", "torch", "interpret" or "auto".
    trust_inputs: arrays are taken as they are; they must be C-contiguous and have the dtypes and
    sizes that the inputs say, which is not checked.
    donate: inputs, as symbols or by name, whose arrays may be overwritten and returned as results.
    Raises GraphError for a missing input, BackendError for a backend that is not there.

    >>> import lazyarr as xp
    >>> x = xp.symbol("x", shape=(None,))
    >>> f = function([x], {"double": x * 2}, backend="interpret")
    >>> f(np.array([1.0, 2.0]))
    {'double': array([2., 4.])}

    >>> here = np.empty(2)
    >>> f(np.array([1.0, 2.0]), out={"double": here})["double"] is here
    True
    """
    return Function(inputs, outputs, backend, givens, updates, trust_inputs, donate)

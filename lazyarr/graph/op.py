"""Op: one frozen record that says everything particular to an operation.

Calling an op records: `prepare` turns the user's arguments into operands and canonical parameters,
`infer` gives the type of the result (memoised on the types), and one node is made. No op is ever a
subclass; what ops have in common belongs to their kind.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lazyarr.errors import GraphError, LazyArrError
from lazyarr.graph import dtypes
from lazyarr.graph.node import Call, Variable
from lazyarr.graph.registry import get_op
from lazyarr.graph.shapes import Size

KINDS = (
    "elementwise",
    "reduction",
    "cumulative",
    "movement",
    "creation",
    "indexing",
    "contraction",
    "library",
    "control",
    "composite",
)
_MEMO_LIMIT = 8192


@dataclass(frozen=True)
class NoGradient:
    """Stands in place of a derivative rule, and says why there is none."""

    reason: str


NO_GRADIENT = NoGradient


@dataclass(frozen=True)
class Check:
    """What must hold for every element: a scalar predicate, the error class and its message."""

    formula: Callable
    error: type
    message: str


@dataclass(frozen=True)
class AxisMap:
    """Where one input axis reads: `start + step * index of out_axis` (None: just `start`)."""

    out_axis: int | None
    step: Any = 1
    start: Any = 0


@dataclass(frozen=True, eq=False, repr=False)
class Op:
    """The record of an operation; which fields a kind needs is told in `graph/ops/README.md`."""

    name: str
    kind: str
    prepare: Callable  # the user's arguments -> (operands, parameters)
    infer: Callable  # (op, operand types, parameters) -> Type
    doc: str
    reference: Callable | None = None
    formula: Callable | None = None
    combine: str | None = None
    index: Callable | None = None
    expand: Callable | None = None
    check: Check | None = None
    vjp: Callable | NoGradient | None = None
    jvp: Callable | NoGradient | str | None = None
    batch: Callable | None = (
        None  # (node, operands, moved, size) -> node, or None for the kind's rule
    )
    accepts: str = "all"
    result: str = "promote"
    promoted: tuple[int, ...] | None = None
    sizes: tuple[str, ...] = ()  # the parameters that hold sizes
    facts: frozenset[str] = frozenset()
    since: str = "2021.12"
    public: bool = True
    memo: dict = field(default_factory=dict)
    bare: Any = field(init=False, default=None)  # the call without parameters, made once

    def __post_init__(self) -> None:
        object.__setattr__(self, "bare", Call(self, ()))

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self):
        return get_op, (self.name,)

    def __call__(self, *args: object, **kwargs: object) -> Variable:
        """Record one application and return its node."""
        operands, params = self.prepare(*args, **kwargs)
        return self.apply(Call(self, tuple(params.items())) if params else self.bare, operands)

    def record(self, operands: tuple, params: dict | None = None) -> Variable:
        """Make the node of canonical operands and parameters."""
        return self.apply(Call(self, tuple(params.items())) if params else self.bare, operands)

    def apply(self, call: Call, operands: tuple) -> Variable:
        """Make the node of an interned call."""
        types = tuple([v.type if v.__class__ is Variable else v.__class__ for v in operands])
        key = (call, types)
        out = self.memo.get(key)
        if out is None:
            out = self._infer(call, types, operands)
            if len(self.memo) > _MEMO_LIMIT:
                self.memo.clear()
            self.memo[key] = out
        if int in types:
            self._check_scalars(types, operands)
        return Variable(out, (call, *operands))

    def _infer(self, call: Call, types: tuple, operands: tuple):
        infer = self.infer
        for t in types:
            if getattr(t, "named", False):
                infer = t.infer
                break
        try:
            return infer(self, types, dict(call.params))
        except LazyArrError as error:
            raise type(error)(f"{self.name}: {error}{_made_at(operands)}") from None

    def _check_scalars(self, types: tuple, operands: tuple) -> None:
        """Refuse Python integers that the dtype of the computation cannot hold."""
        if self.kind == "elementwise":
            dtype = self.compute_dtype_of(types)
            for i, v in enumerate(operands):
                if v.__class__ is int and (self.promoted is None or i in self.promoted):
                    dtypes.check_fits(v, dtype)

    def compute_dtype_of(self, types: tuple):
        """Return the dtype to which the promoted operands of an elementwise op are cast."""
        return common_dtype(self, types)

    def compute_dtype(self, node: Variable):
        """Return the dtype in which an elementwise node computes."""
        return self.compute_dtype_of(operand_types(node))


def _made_at(operands: tuple) -> str:
    """Say for an error where each operand was made."""
    rows = [
        f"\n  operand {i}: {v.type}{f' {v.name!r}' if v.name else ''}, made at {v.where_made()}"
        for i, v in enumerate(operands)
        if v.__class__ is Variable
    ]
    return "".join(rows)


def operand_types(node: Variable) -> tuple:
    """Return the types of a node's operands, the Python class for raw scalars."""
    return tuple(v.type if v.__class__ is Variable else v.__class__ for v in node.inputs)


def common_dtype(op: Op, types: tuple):
    """Return the promoted dtype of operand types; weak scalars take the dtype of the arrays."""
    picked = types if op.promoted is None else [types[i] for i in op.promoted if i < len(types)]
    strong = [t.dtype for t in picked if not isinstance(t, type)]
    kinds = [int if t is Size else t for t in picked if isinstance(t, type)]
    if strong:
        out = strong[0]
        for d in strong[1:]:
            out = dtypes.promote(out, d)
    else:
        out = dtypes.DEFAULTS[max(kinds, key=dtypes.SCALARS.index)]
    for kind in kinds:
        out = dtypes.weak(out, kind)
    if op.accepts in ("floating-point", "real floating-point"):
        out = dtypes.floating(out)
    return out


def scalar_of(value: object) -> object:
    """Return a raw operand as a plain Python number where it is one."""
    if isinstance(value, Size):
        raise GraphError(f"the size {value} has no value yet.")
    return value

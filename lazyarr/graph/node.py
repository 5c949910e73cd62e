"""Variable: the one node of a graph.

A leaf is a symbol (no value) or data (a read-only array). Every other node holds `expr`, a tuple
`(call, *inputs)` where `call` is an interned op with its parameters and an input is a Variable or a
raw weak scalar (a Python number or a Size). Nothing points from a node to its consumers, so a graph
is freed by reference counting; several outputs go through `pick` nodes.
"""

import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lazyarr.errors import ConcretizationError, GraphError
from lazyarr.graph.registry import OPS
from lazyarr.graph.shapes import Size
from lazyarr.graph.types import TensorType, TupleType, Type, code_of

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_counter = itertools.count()
_files: dict[str, bool] = {}  # file name -> is it part of the package
_lock = threading.Lock()
_calls: "weakref.WeakValueDictionary[tuple, Call]" = weakref.WeakValueDictionary()


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self):
        return "UNSET"


UNSET = _Unset()


class Call:
    """An interned application of parameters to an op: equal calls are the same object."""

    __slots__ = ("op", "params", "_code", "_names", "__weakref__")

    def __new__(cls, op: object, params: tuple):
        """Return the one call of an op with these `(name, value)` pairs."""
        key = (op, params)
        found = _calls.get(key)
        if found is None:
            with _lock:
                found = _calls.get(key)
                if found is None:
                    found = object.__new__(cls)
                    found.op, found.params, found._code, found._names = op, params, None, ()
                    _calls[key] = found
        return found

    @property
    def structure(self) -> tuple:
        """The op and its parameters, sizes only as "is it 1"."""
        sizes = self.op.sizes
        return (self.op, *(_is_one(v) if n in sizes else v for n, v in self.params))

    @property
    def code(self) -> int:
        """The number of the structure."""
        if self._code is None:
            found = dict.fromkeys(name for _, value in self.params for name in _names_in(value))
            self._names = tuple([code_of(("dim", name)) for name in found])
            self._code = code_of(self.structure)
        return self._code

    @property
    def names(self) -> tuple[int, ...]:
        """The numbers of the strings among the parameters, which may be names of dims."""
        return self._names if self.code >= 0 else ()

    def __reduce__(self):
        return Call, (self.op, self.params)

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v}" for k, v in self.params if v is not None)
        return f"{self.op.name}({shown})" if shown else self.op.name


def _is_one(value: object) -> object:
    """Return a size parameter with each size replaced by whether it is 1."""
    if isinstance(value, tuple):
        return tuple([_is_one(v) for v in value])
    return value == 1 if isinstance(value, int | Size) else value


def _names_in(value: object) -> list[str]:
    """Return the strings in a parameter, and the dims of the inputs of a graph in it."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, tuple):
        return [name for v in value for name in _names_in(v)]
    inputs = getattr(value, "inputs", ())
    return [name for v in inputs for name in getattr(getattr(v, "type", None), "dims", ())]


class Variable:
    """A node: type, expression, value, name, and the place in the user's code where it was made."""

    __slots__ = (
        "type", "expr", "value", "name", "seq", "depth", "symbolic", "site", "__weakref__",
    )  # fmt: skip

    def __init__(self, type: Type, expr: tuple | None = None, value: object = UNSET, name=None):
        self.type, self.expr, self.value, self.name = type, expr, value, name
        self.seq = next(_counter)
        self.site = site()
        depth = 0  # of what is not computed; below 0: the length of the history of a computed node
        if expr is None:
            symbolic = value is UNSET
        else:
            symbolic = False
            for v in expr:
                if v.__class__ is Variable:
                    if v.depth >= depth:
                        depth = v.depth + 1
                    if v.symbolic:
                        symbolic = True
        self.depth, self.symbolic = depth, symbolic

    @property
    def call(self) -> Call | None:
        """The op and its parameters, None for a leaf."""
        return self.expr[0] if self.expr is not None else None

    @property
    def op(self):
        """The op that makes this value, None for a leaf."""
        return self.expr[0].op if self.expr is not None else None

    @property
    def params(self) -> dict:
        """The parameters of the op by name."""
        return dict(self.expr[0].params) if self.expr is not None else {}

    @property
    def inputs(self) -> tuple:
        """The operands: Variables and raw weak scalars."""
        return self.expr[1:] if self.expr is not None else ()

    @property
    def apply(self) -> "Apply | None":
        """The application that this node is the output of, as a view; None for a leaf."""
        return Apply(self) if self.expr is not None else None

    @property
    def is_symbol(self) -> bool:
        """True for a leaf without a value."""
        return self.expr is None and self.value is UNSET

    @property
    def is_cut(self) -> bool:
        """True for a computed node whose history was dropped to bound memory."""
        return self.expr is None and self.depth < 0

    @property
    def is_data(self) -> bool:
        """True for a leaf that holds an array."""
        return self.expr is None and self.value is not UNSET

    @property
    def dtype(self) -> np.dtype:
        """The dtype of a tensor."""
        return self.type.dtype

    @property
    def shape(self) -> tuple:
        """The sizes of a tensor, ints or `Size`s."""
        return self.type.shape

    @property
    def ndim(self) -> int:
        """The rank of a tensor."""
        return self.type.ndim

    def where_made(self) -> str:
        """Return `file:line` of the user's code that made this node, or an empty string."""
        return describe_site(self.site)

    def __repr__(self) -> str:
        label = self.name or (self.call if self.expr is not None else "data")
        return f"<{label}: {self.type}>"

    def __bool__(self) -> bool:
        raise ConcretizationError(f"the truth value of {self!r} is not known while recording.")


@dataclass(frozen=True)
class Apply:
    """A view of one application: op, inputs, parameters and outputs, as other compilers show it."""

    node: Variable

    @property
    def op(self):
        """The op applied."""
        return self.node.op

    @property
    def inputs(self) -> tuple:
        """The operands."""
        return self.node.inputs

    @property
    def outputs(self) -> tuple:
        """The types of the results."""
        t = self.node.type
        return t.types if isinstance(t, TupleType) else (t,)


def site() -> tuple | None:
    """Return `(code, instruction)` of the first frame outside the package; decoded on demand."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        inside = _files.get(code.co_filename)
        if inside is None:
            inside = _is_inside(code.co_filename)
        if not inside:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def _is_inside(file: str) -> bool:
    """Tell whether code of a file is part of the package, and note it."""
    inside = _files[file] = file.startswith(_PACKAGE)
    return inside


def describe_site(where: tuple | None) -> str:
    """Return `file:line` of a stored site."""
    if where is None:
        return ""
    code, instruction = where
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= instruction < stop and number is not None:
            line = number
            break
    return f"{code.co_filename}:{line}"


def symbol(type: Type, name: str | None = None) -> Variable:
    """Return a leaf without a value: an input of functions."""
    return Variable(type, None, UNSET, name)


def data(value: object, type: Type | None = None, name: str | None = None) -> Variable:
    """Return a leaf that holds an array, which nobody may write any more."""
    array = np.asarray(value)
    array.flags.writeable = False
    if array.nbytes >= TRACKED:
        track(array)
    if type is None:
        type = TensorType(array.dtype, array.shape)
    return Variable(type, None, array, name)


def constant(value: object, dtype: np.dtype | None = None) -> Variable:
    """Return a data leaf of a Python number or array."""
    return data(np.array(value, dtype=dtype))


def as_operand(value: object) -> object:
    """Return a Variable or raw weak scalar for anything an op accepts."""
    cls = value.__class__
    if cls is Variable or cls in (int, float, bool, complex) or cls is Size:
        return value
    if isinstance(value, Variable | Size):
        return value
    if isinstance(value, np.ndarray):
        return data(value.copy())
    if isinstance(value, np.generic):
        return data(np.asarray(value))
    if isinstance(value, bool | int | float | complex):
        kind = next(k for k in (bool, int, float, complex) if isinstance(value, k))
        return kind(value)
    raise GraphError(f"cannot use a {cls.__name__} in a graph; convert it with asarray first.")


# -- bytes held by recorded arrays -----------------------------------------------------------------

TRACKED = 4096  # bytes from which an array counts


class _Memory:
    """Bytes of the arrays that nodes hold, and what relieves them."""

    live = 0
    limit = FLOOR = 64 * 2**20
    relieve: Callable[[], None] | None = None


class _Tracked(weakref.ref):
    """A reference to an array that counts."""

    __slots__ = ("size",)
    size: int


_tracked: dict[int, _Tracked] = {}


def track(array: np.ndarray) -> None:
    """Count an array until it is freed; relieve memory when too much is held."""
    reference = _Tracked(array, _release)
    reference.size = size = array.nbytes
    _tracked[id(reference)] = reference
    _Memory.live += size
    if _Memory.live > _Memory.limit and _Memory.relieve is not None:
        _Memory.relieve()
        _Memory.limit = max(_Memory.FLOOR, 2 * _Memory.live)


def _release(reference: _Tracked) -> None:
    _tracked.pop(id(reference), None)
    _Memory.live -= reference.size


def set_relief(run: Callable[[], None]) -> None:
    """Install what is done when recorded arrays hold too many bytes."""
    _Memory.relieve = run


def live_bytes() -> int:
    """Return the bytes of the larger arrays that nodes hold."""
    return _Memory.live


# -- compiled code that records --------------------------------------------------------------------

_native: list[Any] = []  # the module, once a backend has built it
_uses_native: list[Callable] = []


def on_native(use: Callable) -> None:
    """Call `use(module)` when compiled code for recording is there, `use(None)` to go without."""
    _uses_native.append(use)
    if _native:
        use(_native[0])


def set_native(module: object) -> None:
    """Install compiled code that records as the Python code does, or None to go without."""
    _native[:] = [module]
    for use in _uses_native:
        use(module)


def has_native() -> bool:
    """Tell whether a backend has said whether there is compiled code for recording."""
    return bool(_native)


_python_init = Variable.__init__


def _make_nodes(native: Any) -> None:
    """Let compiled code fill the slots of new nodes, or Python code again."""
    made = _python_init
    if native is not None:
        made = native.set_nodes(Variable, TensorType, UNSET, _counter, _files, _is_inside)
    Variable.__init__ = made  # type: ignore[method-assign]


on_native(_make_nodes)


# How `float(x)` on a node finds the driver, which stands on a higher floor.
_evaluator: list[Callable] = []


def set_evaluator(run: Callable) -> None:
    """Install the function that computes nodes: `run(list of Variables) -> list of arrays`."""
    _evaluator[:] = [run]


def compute_values(nodes: list) -> list:
    """Compute the values of nodes whose leaves all hold data."""
    if not _evaluator:
        raise GraphError("no evaluator is installed; import lazyarr first.")
    return _evaluator[0](nodes)


def _install_operators() -> None:
    """Give Variables Python's operators, each recording the op of the catalogue found late.

    `==` stays identity, so that nodes can be compared and kept in tables; rules write `op.equal`.
    """
    binary = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow",
        "floordiv": "floor_divide", "mod": "remainder", "matmul": "matmul", "and": "bitwise_and",
        "or": "bitwise_or", "xor": "bitwise_xor", "lt": "less", "le": "less_equal",
        "gt": "greater", "ge": "greater_equal",
    }  # fmt: skip

    def forward(name):
        return lambda self, other: OPS[name](self, other)

    def backward(name):
        return lambda self, other: OPS[name](other, self)

    for method, name in binary.items():
        setattr(Variable, f"__{method}__", forward(name))
        if method not in ("lt", "le", "gt", "ge"):
            setattr(Variable, f"__r{method}__", backward(name))
    for method, name in {"neg": "negative", "abs": "abs", "invert": "bitwise_invert"}.items():
        setattr(Variable, f"__{method}__", lambda self, name=name: OPS[name](self))


_install_operators()

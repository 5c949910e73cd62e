"""Show: graphs as text, as a short expression, and as Graphviz.

>>> from lazyarr.graph.node import symbol
>>> from lazyarr.graph.registry import op
>>> from lazyarr.graph.types import TensorType
>>> x = symbol(TensorType("float64", (3,)), "x")
>>> print(text(op.sum(op.multiply(op.exp(x), 2.0))))
%0 = x : float64[3]
%1 = exp(%0) : float64[3]
%2 = multiply(%1, 2.0) : float64[3]
%3 = sum(%2, axis=(0,), keepdims=False, dtype=float64) : float64[]
return %3
>>> expression(op.exp(x) * 2.0 + 1)
'exp(x) * 2.0 + 1'
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lazyarr.graph.node import Variable
from lazyarr.graph.traverse import Graph, toposort

INFIX = {
    "add": ("+", 5), "subtract": ("-", 5), "multiply": ("*", 6), "divide": ("/", 6),
    "floor_divide": ("//", 6), "remainder": ("%", 6), "matmul": ("@", 6), "pow": ("**", 8),
    "less": ("<", 2), "less_equal": ("<=", 2), "greater": (">", 2), "greater_equal": (">=", 2),
    "equal": ("==", 2), "not_equal": ("!=", 2),
    "bitwise_and": ("&", 4), "bitwise_or": ("|", 3), "bitwise_xor": ("^", 3),
}  # fmt: skip
PREFIX = {"negative": ("-", 7), "bitwise_invert": ("~", 7)}
_ATOM = 10
_INDENT = "    "


def text(what: Graph | Variable | Iterable[Variable], limit: int | None = None) -> str:
    """Return a graph as one line per node, shared nodes once, loop bodies indented.

    More than `limit` lines are cut in the middle.
    """
    lines = list(_lines(_as_graph(what), ""))
    if limit is not None and len(lines) > limit:
        head = (limit + 1) // 2
        tail = limit - head
        gap = f"... {len(lines) - limit} more lines ..."
        lines = [*lines[:head], gap, *lines[len(lines) - tail :]]
    return "\n".join(lines)


def _as_graph(what: Graph | Variable | Iterable[Variable]) -> Graph:
    if isinstance(what, Graph):
        return what
    return Graph((), [what] if isinstance(what, Variable) else what)


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    number: dict[Variable, str] = {}
    given = set(graph.inputs)
    order = [*graph.inputs, *(v for v in graph.toposort() if v not in given)]
    for v in order:
        number[v] = f"%{len(number)}"
        named = f"  # {v.name}" if v.name and v.expr is not None else ""
        yield f"{indent}{number[v]} = {_right_side(v, number)} : {v.type}{named}"
        for key, value in v.params.items():
            if isinstance(value, Graph):
                yield f"{indent}{_INDENT}{key}:"
                yield from _lines(value, indent + _INDENT * 2)
    yield f"{indent}return {', '.join(number[v] for v in graph.outputs)}"


def _right_side(v: Variable, number: dict[Variable, str]) -> str:
    if v.expr is None:
        return v.name or ("data" if v.is_data else "symbol")
    operands = [number[x] if x.__class__ is Variable else repr(x) for x in v.inputs]
    return f"{v.op.name}({', '.join([*operands, *_shown_params(v)])})"


def _shown_params(v: Variable) -> list[str]:
    return [f"{k}={x}" for k, x in v.params.items() if x is not None and not isinstance(x, Graph)]


def expression(v: Variable, depth: int = 6) -> str:
    """Return a node in infix form, `...` for what lies deeper than `depth` levels."""
    return _expression(v, depth)[0]


def _expression(v: Any, depth: int) -> tuple[str, int]:
    """Return the text of an operand and how strongly it binds."""
    if v.__class__ is not Variable:
        return repr(v), (_ATOM if not repr(v).startswith("-") else 7)
    if v.expr is None:
        return v.name or _leaf(v), _ATOM
    if depth <= 0:
        return "...", _ATOM
    name = v.op.name
    parts = [_expression(x, depth - 1) for x in v.inputs]
    if name in INFIX and len(parts) == 2:
        sign, level = INFIX[name]
        left = level + (name == "pow")  # a ** b binds to the right
        right = level + (name != "pow")
        return f"{_wrapped(parts[0], left)} {sign} {_wrapped(parts[1], right)}", level
    if name == "basic_index":
        return f"{_wrapped(parts[0], _ATOM)}[{_key(v)}]", _ATOM
    if name in PREFIX:
        sign, level = PREFIX[name]
        return f"{sign}{_wrapped(parts[0], level)}", level
    return f"{name}({', '.join([*(t for t, _ in parts), *_shown_params(v)])})", _ATOM


def _key(v: Variable) -> str:
    """The key of a basic region, as it would be written."""
    starts, lengths, shown = iter(v.inputs[1:]), iter(v.params["lengths"]), []
    sizes: Any = iter(v.inputs[0].type.shape)
    for entry in v.params["spec"]:
        if entry[0] == "new":
            shown.append("None")
            continue
        start, size = next(starts), next(sizes)
        if entry[0] == "int":
            shown.append(str(start) if start.__class__ is not Variable else "...")
            continue
        length, step = next(lengths), entry[1]
        if start.__class__ is not int or length.__class__ is not int:
            shown.append(":" if length is size else "...")
        elif step == 1:
            stop = start + length
            shown.append(f"{start or ''}:{'' if stop == size else stop}")
        else:
            shown.append(f"{start}:{start + length * step}:{step}")
    return ", ".join(shown)


def _wrapped(part: tuple[str, int], level: int) -> str:
    shown, own = part
    return shown if own >= level else f"({shown})"


def _leaf(v: Variable) -> str:
    if v.is_symbol:
        return "symbol"
    value: Any = v.value
    return repr(value.item()) if value.ndim == 0 else f"data{list(value.shape)}"


def dot(graph: Graph | Variable | Sequence[Variable]) -> str:
    """Return a graph in Graphviz's language; loop bodies are not drawn."""
    whole = _as_graph(graph)
    number = {v: i for i, v in enumerate(toposort([*whole.inputs, *whole.outputs]))}
    rows = ["digraph {", '  node [shape=box, fontname="monospace"];']
    for v, i in number.items():
        label = v.name or (v.op.name if v.expr is not None else _leaf(v))
        style = ", style=rounded" if v.expr is None else ""
        rows.append(f"  n{i} [label={_quoted(f'{label}  {v.type}')}{style}];")
        for k, x in enumerate(v.inputs):
            if x.__class__ is Variable:
                rows.append(f"  n{number[x]} -> n{i} [label={k}];")
            else:
                rows.append(f"  c{i}_{k} [label={_quoted(repr(x))}, shape=plaintext];")
                rows.append(f"  c{i}_{k} -> n{i} [label={k}];")
    for k, v in enumerate(whole.outputs):
        rows.append(f"  out{k} [shape=plaintext, label=output]; n{number[v]} -> out{k};")
    return "\n".join([*rows, "}"])


def _quoted(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

"""A scan taken apart, and a graph rebuilt with other scans."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lazyarr.errors import GraphError
from lazyarr.graph.node import Variable
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph, with_inputs

Outputs = list[Variable | None]  # by the old index of a pick, None for what nobody reads


@dataclass(frozen=True)
class Loop:
    """A scan taken apart: operands, and the body's inputs and outputs in the same groups.

    With `until`, the last of the ys is what ends the loop, and stands for the count outside; with
    `counted`, the last of the captures is the number of steps.
    """

    init: tuple[Variable, ...]
    xs: tuple[Variable, ...]
    captures: tuple[Variable, ...]
    carry: tuple[Variable, ...]
    elements: tuple[Variable, ...]
    closed: tuple[Variable, ...]
    new: tuple[Variable, ...]
    ys: tuple[Variable, ...]
    length: Any
    reverse: bool
    until: bool = False
    counted: bool = False
    recompute: bool = False

    @classmethod
    def of(cls, node: Variable, inputs: Sequence[Variable]) -> "Loop":
        """Return the parts of a scan node, on the given operands."""
        q = node.params
        n, m, body = q["n_carry"], q["n_carry"] + q["n_xs"], q["body"]
        operands, inside = tuple(inputs), body.inputs
        return cls(
            operands[:n], operands[n:m], operands[m:],
            inside[:n], inside[n:m], inside[m:],
            body.outputs[:n], body.outputs[n:],
            q["length"], q["reverse"], q["until"], q["counted"], q["recompute"],
        )  # fmt: skip

    @property
    def body(self) -> Graph:
        """The body as a graph."""
        return Graph((*self.carry, *self.elements, *self.closed), (*self.new, *self.ys))

    def scan(self) -> Variable:
        """Record the loop."""
        out: Variable = op.scan(
            self.body,
            (*self.init, *self.xs, *self.captures),
            length=self.length,
            reverse=self.reverse,
            n_carry=len(self.init),
            n_xs=len(self.xs),
            until=self.until,
            counted=self.counted,
            recompute=self.recompute,
        )
        return out

    def with_outputs(self, outputs: Sequence[Variable]) -> "Loop":
        """Return the loop with other expressions for its outputs."""
        n = len(self.new)
        return replace(self, new=tuple(outputs[:n]), ys=tuple(outputs[n:]))


def is_scan(v: Variable) -> bool:
    """Tell whether a node is a loop."""
    return v.expr is not None and v.op.name == "scan"


def remade(graph: Graph, remake: Callable[[Variable, list[Variable]], Outputs | None]) -> Graph:
    """Rebuild a graph; `remake` gives the outputs of a scan on new operands, None to keep it."""
    done: dict[Variable, Variable] = {v: v for v in graph.inputs}  # some are nodes
    outputs: dict[Variable, Outputs] = {}
    for v in graph.toposort():
        if v.expr is None or v in done:
            done[v] = v
            continue
        if v.op.name == "pick" and v.inputs[0] in outputs:
            chosen = outputs[v.inputs[0]][v.params["index"]]
            if chosen is None:
                raise GraphError(f"{v!r} reads an output that was dropped.")
            done[v] = chosen
            continue
        inputs = [done[x] if x.__class__ is Variable else x for x in v.inputs]
        made = remake(v, inputs) if is_scan(v) else None
        if made is not None:
            outputs[v] = made
        done[v] = with_inputs(v, inputs)
    return Graph(graph.inputs, [done[v] for v in graph.outputs])

"""What derivatives cost: a value with its gradient, and with a tangent, over the value alone.

    python -m benchmarks.cost [model ...]

Two ratios for each model of benchmarks/models.py without library calls that dominate it: scalar
operations after the passes, by the costs of the scalar language, and CPU time on C, interleaved.
"""

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lazyarr as xp
from benchmarks import models, timing
from lazyarr.autodiff.forward import pushforward
from lazyarr.autodiff.reverse import pullback
from lazyarr.backends.driver import Program
from lazyarr.graph import scalar
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import operand_types
from lazyarr.graph.registry import op
from lazyarr.graph.traverse import Graph
from lazyarr.namespace.derivatives import positional
from lazyarr.passes.pipeline import run
from tests.models import adbench
from tests.models.models import MODELS

REVERSE, FORWARD = 4.0, 3.0  # goals: value and derivative over the value


def recorded(name: str, data: dict[str, Any]) -> tuple[list[Variable], Variable, list[np.ndarray]]:
    """The inputs of a model, its value, and a point."""
    stored = models.entry(name)
    with xp.set_options(skipna=False):
        if name == "adbench_gmm":
            arrays = [np.asarray(data[k], np.float64) for k in ("alphas", "means", "icf")]
            symbols = [xp.symbol(f"p{i}", shape=a.shape) for i, a in enumerate(arrays)]
            value = adbench.gmm(*symbols, data)
        else:
            arrays = [np.array(stored["points"][1]["point"])]
            symbols = [xp.symbol("x", shape=arrays[0].shape)]
            value = MODELS[name](symbols[0], data)
    nodes = positional([value._v, *(x._v for x in symbols)])
    return nodes[1:], nodes[0], arrays


def programs(name: str, data: dict[str, Any]) -> tuple[dict[str, Graph], list[np.ndarray]]:
    """The value, the value with its gradient, and the value with a tangent."""
    inputs, value, arrays = recorded(name, data)
    slopes = [g for g in pullback([value], inputs, [op.full((), 1.0)]) if g is not None]
    tangents = [symbol(v.type) for v in inputs]
    (push,) = pushforward([value], inputs, tangents)
    given = [*inputs, *tangents]
    return {
        "value": Graph(given, [value]),
        "reverse": Graph(given, [value, *slopes]),
        "forward": Graph(given, [value, push]),
    }, [*arrays, *arrays]


def work(graph: Graph) -> float:
    """Scalar operations of a graph after the passes, an addition counting 1."""
    total = 0.0
    for v in run(graph).toposort():
        if v.op is None or not hasattr(v.type, "shape"):
            continue
        size = math.prod(v.shape)
        if v.op.kind == "elementwise":
            compute = v.op.compute_dtype(v)
            types = operand_types(v)
            args = [scalar.var(k, getattr(t, "dtype", compute)) for k, t in enumerate(types)]
            if v.op.promoted is None:
                args = [scalar.var(k, compute) for k in range(len(types))]
            total += size * scalar.cost(v.op.formula(*args, **v.params))
        elif v.op.kind in ("reduction", "cumulative"):
            total += math.prod(v.inputs[0].shape)
        elif v.op.kind == "contraction":
            labels = {**dict(zip(v.params["spec"][0], v.inputs[0].shape, strict=True)),
                      **dict(zip(v.params["spec"][1], v.inputs[1].shape, strict=True))}  # fmt: skip
            total += 2 * math.prod(labels.values())
        elif v.op.kind == "library":
            total += math.prod(v.shape) * v.shape[-1]
        elif v.op.kind == "indexing":
            total += math.prod(v.inputs[0].shape)
    return total


def compare(name: str) -> None:
    """Print a model's row."""
    graphs, arrays = programs(name, models.entry(name)["data"])
    count = {k: work(g) for k, g in graphs.items()}
    calls = {k: _thunk(Program(g, "c"), arrays) for k, g in graphs.items()}
    times = timing.interleave(calls)
    cells = []
    for mode, goal in (("reverse", REVERSE), ("forward", FORWARD)):
        ratio = times[mode] / times["value"]
        says = timing.verdict(ratio, goal)
        counted = count[mode] / count["value"]
        cells.append(f"{mode}: operations {counted:5.2f}  time {ratio:5.2f}  {says}")
    print(f"{name:26s} {'   '.join(cells)}", flush=True)


def _thunk(program: Program, arrays: Sequence[np.ndarray]) -> Callable[[], object]:
    program(arrays)
    return lambda: program(arrays)


def main(names: Sequence[str]) -> None:
    """Print the table."""
    timing.one_thread()
    print(f"value and derivative over the value; goals: reverse {REVERSE}, forward {FORWARD}")
    for name in names or [n for n in models.MODELS if n != "adbench_ba"]:
        compare(name)


if __name__ == "__main__":
    main(sys.argv[1:])

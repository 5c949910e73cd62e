"""Writes the table of docs/support-matrix.md: `python -m docs.tables.support`, from the root.

Each op is recorded on operands of every dtype that it takes, its program goes through the passes,
and each backend says which of the nodes that are left it takes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lazyarr.backends.base import get_backend
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.op import Op
from lazyarr.graph.ops.control import picks
from lazyarr.graph.registry import OPS
from lazyarr.graph.traverse import Graph
from lazyarr.graph.types import TensorType, TupleType
from lazyarr.passes import pipeline
from tests.strategies.samples import Sample, samples_of

PAGE = Path(__file__).resolve().parents[1] / "support-matrix.md"
START, END = "<!-- table: generated -->\n", "<!-- end of table -->\n"
BACKENDS = ("c", "numba", "jax", "torch")
CALLS = {"torch"}  # backends whose programs are calls, one after the other
COMPILED, CALL, FALLBACK = "compiled", "call", "fallback"
WORST = (COMPILED, CALL, FALLBACK)
WIDER = {"float32": "complex64", "float64": "complex128"}
GROUPS = {  # dtypes -> what stands for them
    ("complex64", "complex128"): "complex",
    ("uint16", "uint32", "uint64"): "uint16 to uint64",
}


def main_dtype(sample: Sample) -> str | None:
    """The dtype that a sample is about."""
    kinds = [a.dtype for a in sample.arrays]
    if not kinds:
        return None
    return max(kinds, key=lambda d: (d.kind in "fc", d.kind in "iu", d.itemsize)).name


def recorded(sample: Sample, wider: bool) -> list[Variable]:
    """The outputs of a sample; `wider` makes its floating operands complex."""
    given = []
    for a in sample.arrays:
        name = WIDER.get(a.dtype.name, a.dtype.name) if wider else a.dtype.name
        given.append(symbol(TensorType(np.dtype(name), a.shape)))
    out = sample.apply(*given)
    outputs = picks(out) if isinstance(out.type, TupleType) else [out]
    return pipeline.run(Graph(given, outputs)).toposort()


def programs(op: Op) -> Iterator[tuple[str, list[Variable]]]:
    """The nodes of programs with an op, and the dtype of each; one program for a dtype."""
    seen: set[str | None] = set()
    for sample in samples_of(op.name):
        dtype = main_dtype(sample)
        for wider in (False, True):
            name = WIDER.get(dtype or "", "") if wider else dtype
            if name in seen or (wider and not name):
                continue
            try:
                nodes = recorded(sample, wider)
            except Exception:
                continue  # not for this dtype
            seen.add(name)
            yield name or "", nodes


def status(backend: str, nodes: list[Variable]) -> str:
    """How a backend runs a program: the least native of its parts."""
    machine = get_backend(backend)
    worst = CALL if backend in CALLS else COMPILED
    for v in nodes:
        if v.op is None or v.op.name == "pick":
            continue
        own = COMPILED
        if not machine.supports(v):
            own = FALLBACK
        elif v.op.kind == "library" or backend in CALLS:
            own = CALL
        worst = max(worst, own, key=WORST.index)
    return worst


def cell(found: dict[str, str]) -> str:
    """One cell: what holds for most dtypes, then the others."""
    if not found:
        return ""
    usual = max(WORST, key=lambda s: sum(v == s for v in found.values()))
    texts = [usual]
    for other in WORST:
        names = [d for d, s in found.items() if s == other != usual]
        for group, word in GROUPS.items():
            known = [d for d in group if d in found]
            if known and set(known) <= set(names):
                names = [*(d for d in names if d not in known), word]
        if names:
            texts.append(f"{', '.join(names)}: {other}")
    return "; ".join(texts)


def row(op: Op) -> str | None:
    """The line of an op; None where nothing can be recorded without more."""
    found = dict(programs(op))
    if not found:
        return None
    cells = [cell({d: status(b, nodes) for d, nodes in found.items()}) for b in BACKENDS]
    return f"| {op.name} | {op.kind} | {' | '.join(cells)} |"


def table() -> str:
    """The table as text."""
    public = sorted((o for o in OPS.values() if o.public), key=lambda o: o.name)
    rows = [r for o in public if (r := row(o)) is not None]
    head = ["| op | kind | C | Numba | JAX | Torch |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def page(text: str) -> str:
    """The page with the table made anew."""
    before, _, rest = text.partition(START)
    return before + START + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

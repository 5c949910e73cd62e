"""Reading and writing regions and elements: basic_index, set_at, add_at, take, take_set, take_add.

A region becomes plain slicing with positive steps, followed by `flip` where a step is negative; an
axis whose start is only known at run time is cut by the word `window` first.
"""

from dataclasses import dataclass

import numpy as np

from lazyarr.backends.array.text import INT64, Scope
from lazyarr.graph.node import Variable


@dataclass
class Span:
    """One input axis of a region: where it starts, how many elements it takes, and how."""

    start: object  # int, Size, or a 0-d Variable
    length: object  # int or Size; 1 for an integer index
    step: int
    kept: bool  # False for an integer index, whose axis vanishes

    @property
    def dynamic(self) -> bool:
        """Whether the start is only known at run time."""
        return self.start.__class__ is Variable


def spans(spec: tuple, lengths: tuple, starts: tuple) -> list[Span | None]:
    """Return a region as one span per input axis, None for each new axis."""
    begin, rest = iter(starts), iter(lengths)
    found: list[Span | None] = []
    for entry in spec:
        if entry[0] == "new":
            found.append(None)
        elif entry[0] == "int":
            found.append(Span(next(begin), 1, 1, kept=False))
        else:
            found.append(Span(next(begin), next(rest), entry[1], kept=True))
    return found


def _lowest(scope: Scope, span: Span) -> str:
    """The smallest index of a span, as text: of negative steps the end."""
    back = (span.length - 1) * -span.step if span.step < 0 else 0
    if not span.dynamic:
        return scope.module.size(span.start - back)
    start = scope.arg(span.start, INT64)
    if span.step > 0:
        return start
    return scope.call("subtract", start, scope.arg(back, INT64))


def basic_index(scope: Scope, node: Variable) -> str:
    """The region as slicing."""
    x, *starts = node.inputs
    parts = spans(node.params["spec"], node.params["lengths"], tuple(starts))
    text, dtype = scope.arg(x), node.dtype
    axis = 0
    for span in parts:
        if span is not None:
            if span.dynamic:
                text = _windowed(scope, text, axis, span, dtype)
                span.start, span.step = 0, 1
            axis += 1
    keys = _keys(scope, parts, x.type.shape)
    if any(k != ":" for k in keys):
        text = f"{text}[{', '.join(keys)}]"
    flipped = _flipped(parts)
    return scope.move("flip", text, dtype=dtype, axis=flipped) if flipped else text


def _flipped(parts: list) -> tuple[int, ...]:
    """The axes of the region whose step is negative."""
    kept = [p for p in parts if p is None or p.kept]
    return tuple(i for i, p in enumerate(kept) if p is not None and p.step < 0)


def _windowed(scope: Scope, text: str, axis: int, span: Span, dtype: np.dtype) -> str:
    """Cut one axis by a start known at run time."""
    start = scope.arg(span.start, INT64)
    length = scope.module.size(span.length)
    if span.step == 1:
        return scope.temporary(scope.move("window", text, start, length, dtype=dtype, axis=axis))
    steps = scope.call("arange", length, dtype=INT64)
    steps = scope.call("multiply", scope.arg(span.step, INT64), steps)
    index = scope.call("add", start, steps)
    return scope.temporary(scope.move("take", text, index, dtype=dtype, axis=axis))


def _keys(scope: Scope, parts: list, shape: tuple) -> list[str]:
    """Return the text of one key per span; all steps positive, the whole axis as `:`."""
    keys, sizes = [], iter(shape)
    for span in parts:
        if span is None:
            keys.append("None")
            continue
        size = next(sizes)
        step = abs(span.step)
        if not span.kept:
            keys.append(scope.module.size(span.start))
        elif (
            span.start == 0
            and span.step == 1
            and span.length is size
            or (step == 1 and isinstance(size, int) and span.length == size)
        ):
            keys.append(":")
        else:
            low = span.start if span.step > 0 else span.start - (span.length - 1) * step
            text = f"{scope.module.size(low)}:{scope.module.size(low + span.length * step)}"
            keys.append(text if step == 1 else f"{text}:{step}")
    return keys


def write_region(scope: Scope, node: Variable) -> str:
    """set_at and add_at: the value along the axes of x, written with positive steps."""
    x, v, *starts = node.inputs
    parts = spans(node.params["spec"], node.params["lengths"], tuple(starts))
    word = "set_region" if node.op.name == "set_at" else "add_region"
    dtype, value = node.dtype, scope.arg(v)
    flipped = _flipped(parts)
    if flipped:
        value = scope.move("flip", value, dtype=dtype, axis=flipped)
    axes = [p for p in parts if p is not None]
    if any(not p.kept for p in axes) or None in parts:
        value = scope.move("reshape", value, dtype=dtype, shape=tuple(p.length for p in axes))
    begin = scope.tuple([_lowest(scope, p) for p in axes])
    steps = scope.module.literal(tuple(abs(p.step) for p in axes))
    args = [scope.arg(x), value]
    if node.op.name == "add_at":
        return _added(scope, word, args, f"starts={begin}, steps={steps}", dtype)
    bits = scope.module.table.movable.get(dtype)
    if bits is not None:
        args = [scope.bits(a, bits) for a in args]
    out = scope.call(word, *args, f"starts={begin}", f"steps={steps}")
    return out if bits is None else scope.bits(out, dtype)


def _added(scope: Scope, word: str, args: list[str], rest: str, dtype: np.dtype) -> str:
    """A call that adds: through a wider dtype where the namespace lacks arithmetic."""
    wide = scope.module.table.wider.get(dtype)
    if wide is None:
        return scope.call(word, *args, rest)
    texts = [scope.cast(a, dtype, wide) for a in args]
    return scope.cast(scope.call(word, *texts, rest), wide, dtype)


def take(scope: Scope, node: Variable) -> str:
    """Elements at trusted indices."""
    x, idx = node.inputs
    return scope.move(
        "take", scope.arg(x), scope.arg(idx, INT64), dtype=node.dtype, axis=node.params["axis"]
    )


def scatter(scope: Scope, node: Variable) -> str:
    """take_set and take_add at trusted indices."""
    x, idx, v = (
        scope.arg(node.inputs[0]),
        scope.arg(node.inputs[1], INT64),
        scope.arg(node.inputs[2]),
    )
    axis, dtype = node.params["axis"], node.dtype
    if node.op.name == "take_set":
        return scope.move("take_set", x, v, idx, dtype=dtype, moved=2, axis=axis)
    return _added(scope, "take_add", [x, v], f"{idx}, axis={axis}", dtype)


INDEXING = {
    "set_at": write_region,
    "add_at": write_region,
    "take": take,
    "take_set": scatter,
    "take_add": scatter,
}

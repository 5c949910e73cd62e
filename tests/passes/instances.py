"""Random instances of a rule's pattern, and the special values that rules are tried on."""

import itertools
import random
from collections.abc import Iterator

import numpy as np

from lazyarr.errors import LazyArrError
from lazyarr.graph.node import Variable, symbol
from lazyarr.graph.pattern import Node, Number, OfKind, Operand, Pattern
from lazyarr.graph.registry import op
from lazyarr.graph.types import TensorType

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1.5, -2.25, 1e308, 1e-8]
DTYPES = ["float64", "float32", "int64", "int8", "uint8", "bool", "complex128"]
SHAPES = [(), (3,), (2, 3), (1, 3)]
NUMBERS = [0, 0.0, -0.0, 1, -1, 2, 3, -3, 0.5, 4.0, -0.25, 1.5, 1e300, float("inf"), float("nan")]


class Instances:
    """Builds nodes that a pattern matches, from a seeded source of choices."""

    def __init__(self, seed: int, dtypes: list[str] = DTYPES):
        self.random = random.Random(seed)
        self.dtypes = dtypes

    def node(self, pattern: Pattern) -> Variable:
        """Return one node meant to match, or raise LazyArrError where the choices do not fit."""
        self.names: dict[str, object] = {}
        self.dtype = self.random.choice(self.dtypes)
        self.shape = self.random.choice(SHAPES)
        made = self._make(pattern)
        assert isinstance(made, Variable)
        return made

    def _make(self, pattern: Pattern) -> object:
        if isinstance(pattern, Number):
            return pattern.value
        if isinstance(pattern, Node):
            return self._apply(pattern)
        if isinstance(pattern, OfKind):
            return self._of_kind(pattern.kind)
        assert isinstance(pattern, Operand)
        if pattern.name is not None and pattern.name in self.names:
            return self.names[pattern.name]
        made = self._operand(pattern)
        if pattern.name is not None:
            self.names[pattern.name] = made
        return made

    def _operand(self, pattern: Operand) -> object:
        choices: list[object] = []
        if pattern.numbers:
            choices += NUMBERS
        if pattern.variables:
            leaf = self._leaf(pattern.name)
            filled = [self._filled(v) for v in (0, 1, 2)]
            choices += [leaf] * len(NUMBERS) if pattern.test is None else [leaf, *filled]
            choices += [op.square(leaf)] if leaf.dtype.kind == "f" else []
        fitting = [v for v in choices if pattern.test is None or pattern.test(v)]
        if not fitting:
            raise LazyArrError("no operand fits")
        return self.random.choice(fitting)

    def _leaf(self, name: str | None) -> Variable:
        dtype = "bool" if name == "cond" else "int64" if name == "i" else self.dtype
        if name != "i" and name != "cond" and self.random.random() < 0.15:
            dtype = self.random.choice(self.dtypes)
        shape = self.shape if self.random.random() < 0.7 else self.random.choice(SHAPES)
        return symbol(TensorType(dtype, shape), name)

    def _filled(self, value: int) -> Variable:
        dtype = self.random.choice([self.dtype, "bool"])
        number = np.dtype(dtype).type(value).item()
        return op.full(self.random.choice([self.shape, (3,), ()]), number, dtype=dtype)

    def _apply(self, pattern: Node) -> Variable:
        operands = [self._make(o) for o in pattern.operands]
        special = getattr(self, f"_{pattern.op}", None)
        if special is not None:
            return special(*operands)
        return getattr(op, pattern.op)(*operands)

    def _axes(self, rank: int) -> tuple[int, ...]:
        return tuple(sorted(self.random.sample(range(rank), self.random.randint(0, rank))))

    def _reshape(self, x: Variable) -> Variable:
        size = int(np.prod(x.shape))
        return op.reshape(x, self.random.choice([x.shape, (size,), (1, size), (size, 1)]))

    def _permute_dims(self, x: Variable) -> Variable:
        return op.permute_dims(x, self.random.sample(range(x.ndim), x.ndim))

    def _broadcast_to(self, x: Variable) -> Variable:
        return op.broadcast_to(x, self.random.choice([x.shape, (2, *x.shape)]))

    def _specify_shape(self, x: Variable) -> Variable:
        return op.specify_shape(x, x.shape)

    def _flip(self, x: Variable) -> Variable:
        return op.flip(x, axis=self._axes(x.ndim))

    def _expand_dims(self, x: Variable) -> Variable:
        return op.expand_dims(x, axis=self._axes(x.ndim + 1)[:1])

    def _squeeze(self, x: Variable) -> Variable:
        return op.squeeze(x, tuple(i for i, s in enumerate(x.shape) if s == 1))

    def _concat(self, x: Variable) -> Variable:
        return op.concat([x], axis=0)

    def _astype(self, x: Variable) -> Variable:
        return op.astype(
            x, self.random.choice([x.dtype, "float64", "int64", "int16", "complex128"])
        )

    def _basic_index(self, x: Variable) -> Variable:
        return op.basic_index(x, self._key(x))

    def _key(self, x: Variable) -> tuple:
        key: list[object] = []
        for s in x.shape:
            if self.random.random() < 0.2:
                key.append(None)
            if s and self.random.random() < 0.3:
                key.append(self.random.randrange(-s, s))
            else:
                bounds = [None, *range(-s - 1, s + 2)]
                step = self.random.choice([None, 1, -1, 2, -2])
                key.append(slice(self.random.choice(bounds), self.random.choice(bounds), step))
        return tuple(key)

    def _sum(self, x: Variable) -> Variable:
        axes = self._axes(x.ndim) or tuple(range(x.ndim))
        return op.sum(x, axis=axes, keepdims=self.random.random() < 0.5)

    def _softmax(self, x: Variable) -> Variable:
        return op.softmax(x, axis=self.random.randrange(x.ndim))

    def _full(self, value: object) -> Variable:
        return op.full(self.random.choice(SHAPES), value)

    def _add_at(self, x: object, v: Variable) -> Variable:
        if not isinstance(x, Variable) or not x.ndim:
            raise LazyArrError("no region")
        region = op.basic_index(x, self.random.randrange(x.shape[0]))
        rest = {k: w for k, w in region.params.items()}
        return op.add_at(x, v, *region.inputs[1:], **rest)

    def _take_add(self, x: object, i: Variable, v: Variable) -> Variable:
        if not isinstance(x, Variable) or not x.ndim:
            raise LazyArrError("no axis")
        return op.take_add(x, i, v, axis=0)

    def _contract(self, x: Variable, y: Variable) -> Variable:
        labels = self.random.sample(range(4), x.ndim), self.random.sample(range(4), y.ndim)
        alone = set(labels[0]) ^ set(labels[1])
        shared = [k for k in {*labels[0], *labels[1]} - alone if self.random.random() < 0.3]
        out = [*alone, *shared]
        self.random.shuffle(out)
        return op.contract(x, y, (*labels, out))

    def _of_kind(self, kind: str) -> Variable:
        x = self._leaf("x")
        full = self._filled(self.random.choice([0, 1, 2]))
        if kind == "elementwise":
            wide = self.random.choice([full, self._broadcast_to(self._leaf("y"))])
            f = self.random.choice(
                [op.add, op.multiply, op.maximum, op.subtract, op.less, op.equal]
            )
            pair = self.random.choice([(x, wide), (wide, x), (wide, full), (full, 2), (full, full)])
            return self._of_few(x) if self.random.random() < 0.2 else f(*pair)
        if kind == "movement":
            build = self.random.choice(
                [
                    self._flip,
                    self._reshape,
                    self._broadcast_to,
                    self._basic_index,
                    self._permute_dims,
                    lambda v: op.concat([v, v], axis=0),
                    lambda v: op.stack([v, full]),
                ]
            )
            return build(full)
        if kind == "composite":
            return self.random.choice([op.zeros_like, op.mean, op.ones_like])(x)
        return op.size_value(self.random.randrange(5))

    def _of_few(self, x: Variable) -> Variable:
        """A function of what is read at more places than there are elements."""
        if not x.ndim or x.shape[0] < 2:
            raise LazyArrError("no two places to read")
        i = symbol(TensorType("int64", (self.random.choice([1, 7]),)), "i")
        taken = op.take(x, i, axis=0)
        return self.random.choice([op.exp, op.negative, op.sqrt])(op.multiply(taken, 0.5))


def instances(pattern: Pattern, count: int, dtypes: list[str] = DTYPES) -> Iterator[Variable]:
    """Yield up to `count` nodes that match a pattern."""
    source, found = Instances(0, dtypes), 0
    for _ in range(40 * count):
        try:
            node = source.node(pattern)
        except (LazyArrError, ZeroDivisionError, ValueError, OverflowError):
            continue
        if any(v.bind(node, {}) for v in pattern.variants()):
            found += 1
            yield node
        if found == count:
            return


def values(leaf: Variable, seed: int, special: bool = True) -> np.ndarray:
    """Return random values for a leaf, special ones among them."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(leaf.shape))
    dtype = leaf.dtype
    if leaf.name == "i":
        flat = rng.integers(0, 2, size=size)
    elif dtype.kind == "f":
        flat = rng.choice(np.array([*(SPECIAL if special else ()), *rng.normal(size=8)]), size)
    elif dtype.kind == "c":
        flat = rng.normal(size=size) + 1j * rng.choice([0.0, -0.0, 2.0], size)
    elif dtype.kind == "b":
        flat = rng.integers(0, 2, size=size)
    else:
        info = np.iinfo(dtype)
        known = [0, 1, 3, info.max, info.min, info.max // 2]
        flat = np.array(
            list(itertools.islice(itertools.cycle(rng.permutation(known)), size)), dtype
        )
    with np.errstate(all="ignore"):
        return np.asarray(flat).reshape(leaf.shape).astype(dtype)

"""Pytrees: nested dicts, lists, tuples, named tuples and dataclasses with anything as leaves.

>>> leaves, tree = flatten({"b": 1, "a": (2, None)})
>>> leaves, unflatten(tree, [x * 10 for x in leaves])
([2, 1], {'a': (20, None), 'b': 10})
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """The shape of a nested structure: how to build a node from its children."""

    kind: object  # None: a leaf; "none": the value None; else a type
    keys: tuple = ()
    children: tuple = ()
    static: object = None  # what a container holds beside its children

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum(c.n_leaves for c in self.children)


LEAF, NOTHING = Tree(None), Tree("none")
_MOST = 256

# Containers that other modules know: each class has `holds(value)`, `parts(value)`, which gives
# keys, children and what else there is to know (hashable), and `build(keys, children, static)`.
CONTAINERS: list = []
_LEAVES: set[type] = set()  # classes met that are no containers; what is one depends on the class


def flatten(value: object) -> tuple[list, Tree]:
    """Return the leaves of a nested structure, dicts by sorted key, and its shape."""
    found: list = []
    return found, _flatten(value, found)


def _flatten(value: object, found: list) -> Tree:
    if value.__class__ in _LEAVES:
        found.append(value)
        return LEAF
    if value is None:
        return NOTHING
    for container in CONTAINERS:
        if container.holds(value):
            keys, children, static = container.parts(value)
            return Tree(container, keys, tuple(_flatten(v, found) for v in children), static)
    if isinstance(value, Mapping):
        keys = tuple(sorted(value, key=str))
        return Tree(dict, keys, tuple(_flatten(value[k], found) for k in keys))
    if isinstance(value, list | tuple):
        kind = type(value)
        return Tree(kind, (), tuple(_flatten(v, found) for v in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
        return Tree(type(value), names, tuple(_flatten(getattr(value, n), found) for n in names))
    if len(_LEAVES) < _MOST:
        _LEAVES.add(value.__class__)
    found.append(value)
    return LEAF


def unflatten(tree: Tree, leaves: Sequence) -> object:
    """Rebuild a nested structure from its leaves."""
    rest = iter(leaves)
    return _build(tree, rest)


def _build(tree: Tree, rest) -> object:
    if tree.kind is None:
        return next(rest)
    if tree.kind == "none":
        return None
    children = [_build(c, rest) for c in tree.children]
    if tree.kind is dict:
        return dict(zip(tree.keys, children, strict=True))
    if tree.kind in CONTAINERS:
        return tree.kind.build(tree.keys, children, tree.static)  # type: ignore[attr-defined]
    if tree.kind in (list, tuple):
        return tree.kind(children)
    if tree.keys:
        return tree.kind(**dict(zip(tree.keys, children, strict=True)))
    if hasattr(tree.kind, "_fields"):
        return tree.kind(*children)
    return tree.kind(children)


def tree_map(f: Callable, value: object) -> object:
    """Apply a function to every leaf."""
    leaves, tree = flatten(value)
    return unflatten(tree, [f(x) for x in leaves])


def paths(tree: Tree, prefix: str = "") -> list[str]:
    """Return the path of every leaf, as it would be written."""
    if tree.kind is None:
        return [prefix or "the value"]
    keys = tree.keys or range(len(tree.children))
    found = []
    for k, child in zip(keys, tree.children, strict=False):
        found.extend(paths(child, f"{prefix}[{k!r}]"))
    return found

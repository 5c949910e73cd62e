"""All ops by name, found late, so that the chapters of the catalogue never import each other.

>>> from lazyarr.graph.registry import op
>>> op.exp  # doctest: +SKIP
<op exp>
"""

import sys
from pathlib import Path

from lazyarr.errors import GraphError, near_match

OPS: dict = {}
OWN: set[str] = set()  # the names declared by modules of this package
_PACKAGE = str(Path(__file__).resolve().parent.parent)
_DOORS = (__file__, str(Path(__file__).with_name("ops") / "_declare.py"))


def register(record: object) -> object:
    """Add an op to the catalogue; a name can be taken once."""
    name = record.name  # type: ignore[attr-defined]
    if name in OPS:
        raise GraphError(f"an op named {name!r} exists already; choose another name.")
    OPS[name] = record
    if _declared_in().startswith(_PACKAGE):
        OWN.add(name)
    return record


def _declared_in() -> str:
    """Return the file of the module that declares an op right now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _DOORS:
        frame = frame.f_back
    return frame.f_code.co_filename


def get_op(name: str) -> object:
    """Return the op of a name, or raise GraphError with the nearest one."""
    try:
        return OPS[name]
    except KeyError:
        raise GraphError(f"there is no op named {name!r}.{near_match(name, OPS)}") from None


class _Namespace:
    """Attribute access to `OPS`."""

    __slots__ = ()

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return get_op(name)


op = _Namespace()

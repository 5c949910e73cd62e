"""All ops by name, found late, so that the chapters of the catalogue never import each other.

>>> from lazyarr.graph.registry import op
>>> op.exp  # doctest: +SKIP
<op exp>
"""

from lazyarr.errors import GraphError, near_match

OPS: dict = {}


def register(record: object) -> object:
    """Add an op to the catalogue; a name can be taken once."""
    name = record.name  # type: ignore[attr-defined]
    if name in OPS:
        raise GraphError(f"an op named {name!r} exists already; choose another name.")
    OPS[name] = record
    return record


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

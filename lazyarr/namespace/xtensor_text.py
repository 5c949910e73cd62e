"""How XTensors and datasets are shown: dims, sizes, dtype, expression, coordinates.

Nothing is computed: elements are an expression, only labels are known.
"""

import html as escape
from collections.abc import Iterable, Mapping

import numpy as np

from lazyarr.graph import show

_Row = tuple[bool, str, str, str, str]  # has an index, name, dims, dtype, values


def _sizes(sizes: Mapping) -> list[tuple[str, str]]:
    """Dims and their sizes, `?` where a symbol leaves one unknown."""
    return [(d, str(s) if s.__class__ is int else "?") for d, s in sizes.items()]


def _label(value: object) -> str:
    """One label; dates without a time that is midnight."""
    if isinstance(value, np.datetime64):
        whole, _, part = str(value).partition(".")
        return f"{whole}.{part}" if part.strip("0") else whole.removesuffix("T00:00:00")
    return str(value) if isinstance(value, np.timedelta64) else repr(value)


def _labels(values: object, most: int = 5) -> str:
    if not isinstance(values, np.ndarray):
        return "..."
    flat = values.ravel()[: most + 1]
    shown = [_label(v) for v in (flat if values.dtype.kind in "mM" else flat.tolist())]
    return " ".join(shown[:most]) + (" ..." if values.size > most else "")


def _rows(coords: Mapping) -> list[_Row]:
    return [
        (c.index is not None, name, f"({', '.join(c.dims)})", str(getattr(c.values, "dtype", "")),
         _labels(c.values))
        for name, c in coords.items()
    ]  # fmt: skip


def _variables(variables: Mapping) -> list[_Row]:
    return [
        (False, k, f"({', '.join(x.dims)})", str(x.dtype), show.expression(x._v))
        for k, x in variables.items()
    ]


# -- plain ----------------------------------------------------------------------------------------


def _head(kind: str, name: object, sizes: Mapping) -> str:
    given = f" {name!r}" if name is not None else ""
    return f"<lazyarr.{kind}{given} ({', '.join(f'{d}: {s}' for d, s in _sizes(sizes))})>"


def _section(title: str, rows: list[_Row]) -> list[str]:
    width = max((len(r[1]) for r in rows), default=0)
    lines = [
        f"  {'*' if mark else ' '} {name:{width}}  {dims} {dtype} {shown}"
        for mark, name, dims, dtype, shown in rows
    ]
    return [f"{title}:", *lines] if rows else []


def _attributes(attrs: Mapping) -> list[str]:
    return ["Attributes:", *(f"    {k}: {v}" for k, v in attrs.items())] if attrs else []


def text(x: object) -> str:
    """Return the plain form of an XTensor."""
    lines = [
        f"{_head('XTensor', x._name, x.sizes)} {x.dtype}",  # type: ignore[attr-defined]
        show.expression(x._v),  # type: ignore[attr-defined]
        *_section("Coordinates", _rows(x.coords)),  # type: ignore[attr-defined]
        *_attributes(x.attrs),  # type: ignore[attr-defined]
    ]
    return "\n".join(lines)


def dataset_text(d: object) -> str:
    """Return the plain form of a dataset."""
    lines = [
        _head("XDataset", None, d.sizes),  # type: ignore[attr-defined]
        *_section("Coordinates", _rows(d.coords)),  # type: ignore[attr-defined]
        *_section("Variables", _variables(d.data_vars)),  # type: ignore[attr-defined]
        *_attributes(d.attrs),  # type: ignore[attr-defined]
    ]
    return "\n".join(lines)


# -- notebooks ------------------------------------------------------------------------------------

_CELL = "padding:1px 10px 1px 0;text-align:left;vertical-align:top;border:none"
_CODE = "font-family:monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:4px 0"


def _html_head(kind: str, name: object, sizes: Mapping, labelled: Iterable, dtype: str) -> str:
    """The first line; dims that have labels are bold, as in xarray."""
    known = set(labelled)
    parts = []
    for d, s in _sizes(sizes):
        shown = escape.escape(d)
        parts.append(f"{f'<b>{shown}</b>' if d in known else shown}: {s}")
    given = f" {escape.escape(repr(name))}" if name is not None else ""
    return (
        f"<div style='border-bottom:1px solid currentColor;padding-bottom:3px'>"
        f"<span style='opacity:.7'>lazyarr.{kind}</span>{given} ({', '.join(parts)}) "
        f"<span style='opacity:.7'>{dtype}</span></div>"
    )


def _html_section(title: str, rows: list[_Row]) -> str:
    if not rows:
        return ""
    lines = []
    for mark, name, dims, dtype, shown in rows:
        first = escape.escape(name)
        cells = [f"<b>{first}</b>" if mark else first, *map(escape.escape, (dims, dtype, shown))]
        styles = [_CELL, _CELL, f"{_CELL};opacity:.7", f"{_CELL};{_CODE}"]
        pairs = zip(cells, styles, strict=True)
        lines.append(f"<tr>{''.join(f'<td style={s!r}>{c}</td>' for c, s in pairs)}</tr>")
    return (
        f"<details open><summary>{title} ({len(rows)})</summary>"
        f"<table style='margin-left:1.2em;border:none'>{''.join(lines)}</table></details>"
    )


def _html_attributes(attrs: Mapping) -> str:
    rows = [(False, str(k), "", "", str(v)) for k, v in attrs.items()]
    return _html_section("Attributes", rows)


def html(x: object) -> str:
    """Return the form of an XTensor for notebooks."""
    shown = escape.escape(show.expression(x._v))  # type: ignore[attr-defined]
    return (
        "<div>"
        + _html_head("XTensor", x._name, x.sizes, x.coords, str(x.dtype))  # type: ignore
        + f"<div style='{_CODE}'>{shown}</div>"
        + _html_section("Coordinates", _rows(x.coords))  # type: ignore[attr-defined]
        + _html_attributes(x.attrs)  # type: ignore[attr-defined]
        + "</div>"
    )


def dataset_html(d: object) -> str:
    """Return the form of a dataset for notebooks."""
    return (
        "<div>"
        + _html_head("XDataset", None, d.sizes, d.coords, "")  # type: ignore[attr-defined]
        + _html_section("Coordinates", _rows(d.coords))  # type: ignore[attr-defined]
        + _html_section("Variables", _variables(d.data_vars))  # type: ignore[attr-defined]
        + _html_attributes(d.attrs)  # type: ignore[attr-defined]
        + "</div>"
    )

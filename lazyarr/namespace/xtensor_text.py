"""How an XTensor is shown: dims, sizes, dtype, expression, coordinates; nothing is computed."""

import html as escape

import numpy as np

from lazyarr.graph import show


def _sizes(x: object) -> str:
    return ", ".join(f"{d}: {s}" for d, s in x.sizes.items())  # type: ignore[attr-defined]


def _labels(values: object, most: int = 5) -> str:
    if not isinstance(values, np.ndarray):
        return "..."
    flat = values.ravel()[: most + 1]
    shown = [str(v) if values.dtype.kind in "mM" else repr(v) for v in (
        flat if values.dtype.kind in "mM" else flat.tolist())]  # fmt: skip
    return " ".join(shown[:most]) + (" ..." if values.size > most else "")


def _rows(x: object) -> list[tuple[str, str, str, str]]:
    """Mark, name, dims and values of each coordinate."""
    return [
        ("*" if c.index is not None else " ", name, f"({', '.join(c.dims)})" if c.dims else "()",
         f"{getattr(c.values, 'dtype', '')} {_labels(c.values)}")
        for name, c in x.coords.items()  # type: ignore[attr-defined]
    ]  # fmt: skip


def text(x: object) -> str:
    """Return the plain form."""
    name = f" {x.name!r}" if x.name is not None else ""  # type: ignore[attr-defined]
    lines = [f"<lazyarr.XTensor{name} ({_sizes(x)})> {x.dtype}"]  # type: ignore[attr-defined]
    lines.append(show.expression(x._v))  # type: ignore[attr-defined]
    rows = _rows(x)
    if rows:
        lines.append("Coordinates:")
        width = max(len(r[1]) for r in rows)
        lines += [f"  {mark} {key:{width}}  {dims} {shown}" for mark, key, dims, shown in rows]
    if x.attrs:  # type: ignore[attr-defined]
        lines.append("Attributes:")
        lines += [f"    {k}: {v}" for k, v in x.attrs.items()]  # type: ignore[attr-defined]
    return "\n".join(lines)


def html(x: object) -> str:
    """Return the form for notebooks."""
    name = f" {escape.escape(repr(x.name))}" if x.name is not None else ""  # type: ignore[attr-defined]
    head = f"<b>lazyarr.XTensor</b>{name} ({escape.escape(_sizes(x))}) {x.dtype}"  # type: ignore
    body = f"<pre>{escape.escape(show.expression(x._v))}</pre>"  # type: ignore[attr-defined]
    cells = "".join(
        f"<tr><td>{escape.escape(key)}{'*' if mark == '*' else ''}</td>"
        f"<td>{escape.escape(dims)}</td><td>{escape.escape(shown)}</td></tr>"
        for mark, key, dims, shown in _rows(x)
    )
    attrs = "".join(
        f"<li>{escape.escape(str(k))}: {escape.escape(str(v))}</li>"
        for k, v in x.attrs.items()  # type: ignore[attr-defined]
    )
    table = f"<table>{cells}</table>" if cells else ""
    return f"<div>{head}{body}{table}{f'<ul>{attrs}</ul>' if attrs else ''}</div>"

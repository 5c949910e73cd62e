"""The table of xr.DataArray's names: what the oracle shows to be right, and what PyTensor has.

Print the section of docs/named-dims.md with `python -m tests.namespace.named_table`.
"""

from pathlib import Path

import xarray as xr

from tests.namespace import named_cases_handle, named_cases_labels, named_cases_series  # noqa: F401
from tests.namespace.divergences import DIVERGENCES
from tests.namespace.named_cases import NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "named-dims.md"
START, END = "<!-- table: start -->", "<!-- table: end -->"

# Names of DataArray that pytensor.xtensor 2.38 has; "partly" where arguments or labels are missing.
PYTENSOR = {
    **dict.fromkeys(
        ("dims", "sizes", "shape", "ndim", "size", "dtype", "name", "real", "imag", "conj",
         "conjugate", "T", "transpose", "astype", "isel", "head", "tail", "thin", "clip", "all",
         "any", "cumsum", "cumprod", "dot", "diff", "broadcast_like"), "yes",
    ),
    **dict.fromkeys(
        ("values", "rename", "expand_dims", "squeeze", "copy", "where", "sum", "prod", "mean",
         "var", "std", "max", "min", "stack", "unstack", "as_numpy"), "partly",
    ),
}  # fmt: skip

# Why a name is not there: what it needs has no place in a lazy array.
WHY = {
    **dict.fromkeys(("chunk", "chunks", "chunksizes", "unify_chunks", "map_blocks"), "dask only"),
    **dict.fromkeys(
        ("load", "load_async", "persist", "close", "set_close"), "arrays are immutable: compute()"
    ),
    **dict.fromkeys(
        ("to_netcdf", "to_zarr", "to_dict", "to_pandas", "to_series", "to_dataframe", "to_iris",
         "to_dask_dataframe", "to_masked_array", "to_index", "from_dict", "from_series",
         "from_iris"), "on the computed array",
    ),
    **dict.fromkeys(("encoding", "reset_encoding", "drop_encoding"), "input and output only"),
    **dict.fromkeys(
        ("query", "curvefit", "plot", "convert_calendar", "interp_calendar"),
        "on the computed array",
    ),
    "drop": "deprecated in xarray",
    "dropna": "its size depends on data",
    "str": "text stays in coordinates",
}  # fmt: skip


def names() -> list[str]:
    """The public names of xr.DataArray."""
    return [n for n in dir(xr.DataArray) if not n.startswith("_")]


def passing() -> set[str]:
    """The names that a case of the oracle covers."""
    return {name for covered in NAMES.values() for name in covered}


def table() -> str:
    """The section of the page, between its markers."""
    done = passing()
    rows = [
        f"| `{n}` | {'yes' if n in done else ''} | {PYTENSOR.get(n, '')} "
        f"| {'' if n in done else WHY.get(n, 'not yet')} |"
        for n in names()
    ]
    usable = sum(n in PYTENSOR for n in names())
    head = (
        f"{len(done)} of the {len(names())} public names of `xr.DataArray` are there and pass the "
        f"comparison with xarray; {usable} are in `pytensor.xtensor`, in part or whole."
    )
    lines = ["| name | lazyarr | PyTensor.xtensor | |", "|---|---|---|---|", *rows]
    differs = ["| what | why |", "|---|---|"]
    differs += [f"| {d.what} | {d.reason} |" for d in DIVERGENCES]
    parts = [head, "\n".join(lines), "### Differences from xarray", "\n".join(differs)]
    return "\n\n".join(parts)


def written() -> str:
    """The section as the page has it."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(START) + len(START) : text.index(END)].strip()


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    start, end = page.index(START) + len(START), page.index(END)
    PAGE.write_text(f"{page[:start]}\n\n{table()}\n\n{page[end:]}", encoding="utf-8")
    print(f"{len(passing())} names")

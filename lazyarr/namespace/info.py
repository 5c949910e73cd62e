"""What the namespace says of itself. Source: Array API standard 2025.12, inspection."""

from lazyarr.errors import ChoiceError
from lazyarr.graph import dtypes


class Info:
    """Capabilities, devices and dtypes, as `__array_namespace_info__()` returns them."""

    def capabilities(self) -> dict:
        """Return what optional behaviour exists."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }

    def default_device(self) -> str:
        """Return the device of new arrays."""
        return "cpu"

    def default_dtypes(self, *, device: object = None) -> dict:
        """Return the dtypes of Python numbers and indices."""
        return {
            "real floating": dtypes.float64,
            "complex floating": dtypes.complex128,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def devices(self) -> tuple[str, ...]:
        """Return the devices that arrays can live on."""
        return ("cpu",)

    def dtypes(self, *, device: object = None, kind: object = None) -> dict:
        """Return the dtypes of a kind, by name."""
        groups = {
            "bool": (dtypes.bool_,),
            "signed integer": dtypes.SIGNED,
            "unsigned integer": dtypes.UNSIGNED,
            "integral": dtypes.SIGNED + dtypes.UNSIGNED,
            "real floating": dtypes.REAL,
            "complex floating": dtypes.COMPLEX,
            "numeric": dtypes.ALL[1:],
            None: dtypes.ALL,
        }
        kinds = kind if isinstance(kind, tuple) else (kind,)
        unknown = [k for k in kinds if k not in groups]
        if unknown:
            raise ChoiceError(f"{unknown[0]!r} is no kind of dtype; use one of {list(groups)}.")
        return {str(d): d for k in kinds for d in groups[k]}


def __array_namespace_info__() -> Info:  # noqa: N807 - the standard's name
    """Return the inspection object of the namespace."""
    return Info()

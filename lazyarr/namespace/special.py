"""`lazyarr.special`: special functions under SciPy's names."""

from lazyarr.namespace import functions

__all__ = list(functions.SPECIAL)

globals().update({name: functions.function_of(name) for name in functions.SPECIAL})


def __dir__() -> list[str]:
    """What a prompt offers: the functions."""
    return sorted(__all__)

"""`lazyarr.special`: special functions under SciPy's names."""

from lazyarr.namespace import functions

__all__ = list(functions.SPECIAL)

globals().update({name: functions.function_of(name) for name in functions.SPECIAL})

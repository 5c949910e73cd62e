"""The names of the standard, as `lazyarr` exposes them: functions of ops and the few that are no op."""

from lazyarr.namespace.functions import (
    CREATION,
    ELEMENTWISE,
    MANIPULATION,
    OTHERS,
    STATISTICAL,
    array,
    asarray,
    broadcast_arrays,
    can_cast,
    finfo,
    from_dlpack,
    function_of,
    iinfo,
    isdtype,
    result_type,
)

_FUNCTIONS = ELEMENTWISE + STATISTICAL + MANIPULATION + CREATION + OTHERS
globals().update({name: function_of(name) for name in _FUNCTIONS})

__all__ = [
    *_FUNCTIONS,
    "array", "asarray", "broadcast_arrays", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype",
    "result_type",
]  # fmt: skip

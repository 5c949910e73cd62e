"""The names of the standard as `lazyarr` exposes them: functions of ops and the few others."""

from lazyarr.namespace.conversion import array, asarray, from_dlpack
from lazyarr.namespace.data_dependent import (
    nonzero,
    repeat,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from lazyarr.namespace.functions import (
    CREATION,
    ELEMENTWISE,
    MANIPULATION,
    OTHERS,
    STATISTICAL,
    broadcast_arrays,
    broadcast_shapes,
    can_cast,
    finfo,
    function_of,
    iinfo,
    isdtype,
    meshgrid,
    result_type,
    unstack,
)

_FUNCTIONS = ELEMENTWISE + STATISTICAL + MANIPULATION + CREATION + OTHERS
globals().update({name: function_of(name) for name in _FUNCTIONS})

__all__ = [
    *_FUNCTIONS,
    "array", "asarray", "broadcast_arrays", "broadcast_shapes", "can_cast", "finfo", "from_dlpack",
    "iinfo", "isdtype", "meshgrid", "nonzero", "repeat", "result_type", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "unstack",
]  # fmt: skip

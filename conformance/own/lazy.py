"""Lazy namespaces: nothing computed while recording, types predicted, errors at the call.

A namespace is lazy here when it has `no_implicit_eval()`, a context in which computing is an error.
"""

import operator
from collections.abc import Callable
from functools import cache

import numpy as np

from conformance import spec
from conformance.libraries import Library
from conformance.own import compare
from conformance.own.check import Check, Mismatch, Options, Skip, describe
from conformance.own.draw import Fixed
from conformance.own.recipes import RECIPES, Case
from conformance.own.values import call, demand_name, drawn, judge_shape, parts

SEEDS = 4
CHAPTER = "laziness"


def fixed_cases(library: Library, key: str) -> list[Case]:
    """Return a few calls that need no data-dependent shape and give arrays."""
    missing = [n for n in spec.DTYPES if n not in library.dtypes]
    found = [RECIPES[key](Fixed((), seed, missing)) for seed in range(SEEDS)]
    return [c for c in found if not c.data_dependent and not c.plain]


def ask_recording(library: Library, check: Check, options: Options) -> None:
    """A call computes nothing; shape and dtype are known all the same."""
    demand_name(library, check.entry)
    for case in fixed_cases(library, check.entry):
        args, kwargs = case.given(library)
        act = case.call or (lambda xp, *a, **k: library.get(check.entry)(*a, **k))
        try:
            with library.recording():
                for out in parts(act(library.xp, *args, **kwargs)):
                    _ = tuple(out.shape), out.dtype, repr(out)
        except Exception as error:
            raise Mismatch(f"{case.text(check.entry)}: {describe(error)}") from None


def ask_prediction(library: Library, check: Check, options: Options) -> None:
    """Shape and dtype, read before anything is computed, are those of the computed values."""
    demand_name(library, check.entry)
    for case in fixed_cases(library, check.entry):
        for out in parts(call(library, check.entry, case)):
            shape, dtype = tuple(out.shape), library.dtype_name(out.dtype)
            value = library.numpy(out)
            text = case.text(check.entry)
            compare.shape(value, shape, f"{text}: the computed value")
            compare.dtype(str(value.dtype), dtype, f"{text}: the computed value")


# -- errors at the call ---------------------------------------------------------------------------


def _ones(xp, *shape, dtype="float64"):
    return xp.ones(shape, dtype=getattr(xp, dtype))


_SIZES = (ValueError, IndexError)
BAD: list[tuple[str, str, Callable, tuple]] = [
    ("sum", "axis out of bounds", lambda xp: xp.sum(_ones(xp, 2), axis=5), _SIZES),
    ("sum", "axis twice", lambda xp: xp.sum(_ones(xp, 2, 2), axis=(0, 0)), _SIZES),
    ("max", "an empty axis", lambda xp: xp.max(_ones(xp, 0)), _SIZES),
    ("argmax", "an empty axis", lambda xp: xp.argmax(_ones(xp, 0)), _SIZES),
    ("argmin", "axis out of bounds", lambda xp: xp.argmin(_ones(xp, 2), axis=-2), _SIZES),
    ("cumulative_sum", "no axis", lambda xp: xp.cumulative_sum(_ones(xp, 2, 2)), _SIZES),
    ("cumulative_sum", "axis out of bounds", lambda xp: xp.cumulative_sum(_ones(xp, 2), axis=1),
     _SIZES),
    ("flip", "axis out of bounds", lambda xp: xp.flip(_ones(xp, 2), axis=1), _SIZES),
    ("roll", "axis out of bounds", lambda xp: xp.roll(_ones(xp, 2), 1, axis=1), _SIZES),
    ("sort", "axis out of bounds", lambda xp: xp.sort(_ones(xp, 2), axis=1), _SIZES),
    ("argsort", "axis out of bounds", lambda xp: xp.argsort(_ones(xp, 2), axis=-2), _SIZES),
    ("expand_dims", "axis out of bounds", lambda xp: xp.expand_dims(_ones(xp, 2), axis=3), _SIZES),
    ("expand_dims", "axis out of bounds below", lambda xp: xp.expand_dims(_ones(xp, 2), axis=-3),
     _SIZES),
    ("squeeze", "an axis of size 2", lambda xp: xp.squeeze(_ones(xp, 2), axis=0), _SIZES),
    ("squeeze", "axis out of bounds", lambda xp: xp.squeeze(_ones(xp, 1), axis=1), _SIZES),
    ("permute_dims", "an axis twice", lambda xp: xp.permute_dims(_ones(xp, 2, 2), (0, 0)), _SIZES),
    ("permute_dims", "too few axes", lambda xp: xp.permute_dims(_ones(xp, 2, 2), (0,)), _SIZES),
    ("moveaxis", "axis out of bounds", lambda xp: xp.moveaxis(_ones(xp, 2), 1, 0), _SIZES),
    ("unstack", "axis out of bounds", lambda xp: xp.unstack(_ones(xp, 2), axis=1), _SIZES),
    ("concat", "sizes that differ", lambda xp: xp.concat([_ones(xp, 2, 2), _ones(xp, 2, 3)]),
     _SIZES),
    ("stack", "shapes that differ", lambda xp: xp.stack([_ones(xp, 2), _ones(xp, 3)]), _SIZES),
    ("reshape", "another number of elements", lambda xp: xp.reshape(_ones(xp, 4), (3,)), _SIZES),
    ("reshape", "-1 twice", lambda xp: xp.reshape(_ones(xp, 4), (-1, -1)), _SIZES),
    ("broadcast_to", "a size that does not fit", lambda xp: xp.broadcast_to(_ones(xp, 2), (3,)),
     _SIZES),
    ("broadcast_arrays", "sizes that do not fit",
     lambda xp: xp.broadcast_arrays(_ones(xp, 2), _ones(xp, 3)), _SIZES),
    ("broadcast_shapes", "sizes that do not fit", lambda xp: xp.broadcast_shapes((2,), (3,)),
     _SIZES),
    ("add", "sizes that do not fit", lambda xp: _ones(xp, 2) + _ones(xp, 3), _SIZES),
    ("where", "sizes that do not fit",
     lambda xp: xp.where(_ones(xp, 2, dtype="bool"), _ones(xp, 3), 1.0), _SIZES),
    ("add", "a number too large for int8", lambda xp: _ones(xp, 2, dtype="int8") + 256,
     (OverflowError,)),
    ("bitwise_and", "floats", lambda xp: xp.bitwise_and(_ones(xp, 2), _ones(xp, 2)), (TypeError,)),
    ("floor", "complex", lambda xp: xp.floor(_ones(xp, 2, dtype="complex128")), (TypeError,)),
    ("less", "complex", lambda xp: _ones(xp, 2, dtype="complex128") < 1, (TypeError,)),
    ("matmul", "sizes that differ", lambda xp: _ones(xp, 2, 3) @ _ones(xp, 2, 3), _SIZES),
    ("matmul", "a 0-d operand", lambda xp: xp.matmul(_ones(xp), _ones(xp, 2)), _SIZES),
    ("vecdot", "sizes that differ", lambda xp: xp.vecdot(_ones(xp, 2), _ones(xp, 3)), _SIZES),
    ("vecdot", "axis out of bounds", lambda xp: xp.vecdot(_ones(xp, 2), _ones(xp, 2), axis=-2),
     _SIZES),
    ("tensordot", "sizes that differ",
     lambda xp: xp.tensordot(_ones(xp, 2, 3), _ones(xp, 4, 5), axes=1), _SIZES),
    ("linalg.cross", "vectors of two", lambda xp: xp.linalg.cross(_ones(xp, 2), _ones(xp, 2)),
     _SIZES),
    ("linalg.inv", "no square", lambda xp: xp.linalg.inv(_ones(xp, 2, 3)), _SIZES),
    ("linalg.cholesky", "no square", lambda xp: xp.linalg.cholesky(_ones(xp, 2, 3)), _SIZES),
    ("linalg.solve", "sizes that differ",
     lambda xp: xp.linalg.solve(_ones(xp, 2, 2), _ones(xp, 3)), _SIZES),
    ("linalg.diagonal", "a vector", lambda xp: xp.linalg.diagonal(_ones(xp, 2)), _SIZES),
    ("tril", "a vector", lambda xp: xp.tril(_ones(xp, 2)), _SIZES),
    ("matrix_transpose", "a vector", lambda xp: xp.matrix_transpose(_ones(xp, 2)), _SIZES),
    ("nonzero", "a 0-d array", lambda xp: xp.nonzero(_ones(xp)), _SIZES),
    ("take", "axis out of bounds",
     lambda xp: xp.take(_ones(xp, 2), xp.asarray([0]), axis=1), _SIZES),
    ("__getitem__", "an index out of bounds", lambda xp: _ones(xp, 2)[2], _SIZES),
    ("__getitem__", "an index out of bounds below", lambda xp: _ones(xp, 2)[-3], _SIZES),
    ("__getitem__", "too many indices", lambda xp: _ones(xp, 2)[0, 0], _SIZES),
    ("__getitem__", "a mask of another shape",
     lambda xp: _ones(xp, 2)[_ones(xp, 3, dtype="bool")], _SIZES),
    ("__setitem__", "a value of another shape",
     lambda xp: operator.setitem(_ones(xp, 2), slice(None), _ones(xp, 3)), _SIZES),
    ("__setitem__", "an index out of bounds",
     lambda xp: operator.setitem(_ones(xp, 2), 2, 1.0), _SIZES),
    ("__len__", "of a 0-d array", lambda xp: len(_ones(xp)), (TypeError,)),
    ("__bool__", "of two elements", lambda xp: bool(_ones(xp, 2)), (ValueError, TypeError)),
    ("__int__", "of two elements", lambda xp: int(_ones(xp, 2)), (ValueError, TypeError)),
    ("asarray", "copy=False of a list", lambda xp: xp.asarray([1, 2], copy=False), (ValueError,)),
    ("meshgrid", "an unknown indexing",
     lambda xp: xp.meshgrid(_ones(xp, 2), indexing="ab"), (ValueError,)),
    ("fft.fft", "axis out of bounds",
     lambda xp: xp.fft.fft(_ones(xp, 2, dtype="complex128"), axis=1), _SIZES),
]  # fmt: skip


@cache
def _bad() -> dict[tuple[str, str], tuple]:
    return {(key, what): (act, classes) for key, what, act, classes in BAD}


def ask_error(library: Library, check: Check, options: Options) -> None:
    """A wrong call raises while recording, with a class that a caller would catch."""
    act, classes = _bad()[check.entry, check.detail]
    names = " or ".join(c.__name__ for c in classes)
    try:
        with library.recording():
            act(library.xp)
    except classes as error:
        if type(error).__name__ == "ConcretizationError":
            raise Mismatch("computes before it can tell that the call is wrong") from None
        return
    except Exception as error:
        raise Mismatch(f"{describe(error)}, expected a {names}") from None
    raise Mismatch(f"no error, expected a {names}")


# -- aliasing -------------------------------------------------------------------------------------


def _source_changes(library: Library) -> tuple:
    a = np.array([1.0, 2.0])
    x = library.xp.asarray(a)
    a[0] = 9.0
    return x, [1.0, 2.0]


def _copy_then_set(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0]))
    y = library.xp.asarray(x, copy=True)
    y[0] = 9.0
    return x, [1.0, 2.0]


def _derived_before_set(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0]))
    y = x + 0.0
    x[0] = 9.0
    return y, [1.0, 2.0]


def _view_then_set(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0]))
    y = library.xp.reshape(x, (2, 1))
    y[0, 0] = 9.0
    return x, [1.0, 2.0]


def _set_is_seen(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0]))
    y = x
    x[0] = 9.0
    return y, [9.0, 2.0]


def _value_set_later(library: Library) -> tuple:
    x, v = library.array(np.zeros(2)), library.array(np.array([1.0, 2.0]))
    x[:] = v
    v[0] = 9.0
    return x, [1.0, 2.0]


def _computed_then_written(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0])) + 1.0
    try:
        np.array(x, copy=True)[0] = 9.0
        out = x.compute()
        out[0] = 9.0
    except (AttributeError, ValueError):
        raise Skip("computed values cannot be written") from None
    return x, [2.0, 3.0]


def _in_place_rebinds(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0]))
    y = x
    x += 1.0
    return y, [1.0, 2.0]


def _operand_of_set(library: Library) -> tuple:
    x = library.array(np.array([1.0, 2.0]))
    x[:] = x[::-1]
    return x, [2.0, 1.0]


ALIASING = {
    "a NumPy array changed after asarray": _source_changes,
    "a copy set": _copy_then_set,
    "an array set after another was made of it": _derived_before_set,
    "a reshaped array set": _view_then_set,
    "set seen by every name": _set_is_seen,
    "the value of a set changed later": _value_set_later,
    "a computed value written to": _computed_then_written,
    "in-place operators": _in_place_rebinds,
    "an array set to its own reverse": _operand_of_set,
}


def ask_aliasing(library: Library, check: Check, options: Options) -> None:
    """What is written to one array is not seen in another."""
    out, wanted = ALIASING[check.detail](library)
    compare.values(library.numpy(out), np.array(wanted))


# -- backends -------------------------------------------------------------------------------------


def ask_agreement(library: Library, check: Check, options: Options) -> None:
    """A backend gives what the interpreter gives: shape, dtype, NaN, and values up to rounding."""
    demand_name(library, check.entry)
    reference = Library("lazyarr:interpret", library.xp)

    def judge(library: Library, key: str, case: Case) -> None:
        judge_shape(library, case, call(library, key, case))
        mine = [library.numpy(a) for a in parts(call(library, key, case))]
        with reference.active():
            theirs = [library.numpy(a) for a in parts(call(library, key, case))]
        for a, b in zip(mine, theirs, strict=True):
            compare.dtype(str(a.dtype), str(b.dtype))
            if case.verify is None:  # factors of a matrix are not unique
                compare.values(a, b, case.scale)

    drawn(library, check, options, judge)


def checks(library: Library) -> list[Check]:
    """Return the checks of a lazy library."""
    out = []
    for key in RECIPES:
        if fixed_cases(library, key):
            out.append(Check(CHAPTER, key, "records", ask_recording))
            out.append(Check(CHAPTER, key, "predicts", ask_prediction))
            if library.options.get("backend", "interpret") != "interpret":
                out.append(Check("backends", key, "agrees", ask_agreement))
    out += [Check(CHAPTER, key, "error", ask_error, what) for key, what, *_ in BAD]
    out += [Check(CHAPTER, "copies", "aliasing", ask_aliasing, what) for what in ALIASING]
    return out

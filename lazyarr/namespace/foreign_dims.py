"""Named dims of wrapped functions: a signature such as `"(time, site), (site) -> (time)"`.

An entry for each array argument gives the order in which the function takes its axes. Dims that an
argument has beside those are mapped over, outermost first, and stand in front of the results.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lazyarr.config import options
from lazyarr.errors import ArgumentError, DimError
from lazyarr.namespace.array import Array
from lazyarr.namespace.foreign_arguments import is_array, named_result
from lazyarr.namespace.tree import flatten, unflatten
from lazyarr.namespace.vectorize import vectorize
from lazyarr.namespace.xtensor import XTensor
from lazyarr.namespace.xtensor_data import is_labelled
from lazyarr.xtensor.coords import Coords
from lazyarr.xtensor.joining import merge

_SIDE = re.compile(r"\s*\(([^()]*)\)\s*(?:,|$)")


@dataclass(frozen=True)
class Signature:
    """The dims of the array arguments and of the array results, in order."""

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, text: str) -> "Signature":
        """Return the signature that a text describes.

        >>> Signature.read("(time, site), () -> (time)").inputs
        (('time', 'site'), ())
        """
        left, _, right = text.partition("->")
        return cls(_entries(left, text), _entries(right, text))

    def call(self, function: Callable, args: tuple, kwargs: dict) -> object:
        """Call a function of positional arrays on named ones, and name its results."""
        leaves, tree = flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if is_array(x)]
        if len(places) != len(self.inputs):
            raise ArgumentError(
                f"dims has {len(self.inputs)} arguments on its left, the call {len(places)} arrays."
            )
        for i in places:
            if is_labelled(leaves[i]):
                leaves[i] = XTensor(leaves[i])
        given = [leaves[i] for i in places]
        for x, own in zip(given, self.inputs, strict=True):
            _demand(x, own)
        extra = [
            d
            for x, own in zip(given, self.inputs, strict=True)
            if isinstance(x, XTensor)
            for d in x.dims
            if d not in own
        ]
        if extra:

            def one(*inner: object, **named: object):
                return self.call(function, inner, named)

            args, kwargs = unflatten(tree, leaves)
            return vectorize(one, dim=extra[0])(*args, **kwargs)
        for i, own in zip(places, self.inputs, strict=True):
            leaves[i] = _ordered(leaves[i], own)
        args, kwargs = unflatten(tree, leaves)
        coords = merge(
            [x.coords for x in given if isinstance(x, XTensor)] or [Coords()],
            options.arithmetic_join,
        )
        return self._named(function(*args, **kwargs), coords)

    def _named(self, result: object, coords: Coords) -> object:
        leaves, tree = flatten(result)
        places = [i for i, x in enumerate(leaves) if isinstance(x, Array)]
        if len(places) != len(self.outputs):
            raise ArgumentError(
                f"dims has {len(self.outputs)} results on its right, the function {len(places)}."
            )
        for i, own in zip(places, self.outputs, strict=True):
            named = named_result(leaves[i], own)
            leaves[i] = XTensor._of(named._v, coords.within(own), None, {})  # type: ignore[attr-defined]
        return unflatten(tree, leaves)


def _entries(text: str, whole: str) -> tuple[tuple[str, ...], ...]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _SIDE.match(text, at)
        if match is None:
            raise ArgumentError(
                f"cannot read the dims {whole!r}; write '(time, site), (site) -> (time)'."
            )
        found.append(tuple(w.strip() for w in match[1].split(",") if w.strip()))
        at = match.end()
    return tuple(found)


def _demand(value: object, own: Sequence[str]) -> None:
    """Raise DimError where an argument has not the dims that the function takes."""
    if not isinstance(value, XTensor):
        if getattr(value, "ndim", len(own)) != len(own):
            raise DimError(f"an array of {value.ndim} axes stands for the dims {tuple(own)}.")  # type: ignore[attr-defined]
        return
    missing = [d for d in own if d not in value.dims]
    if missing:
        raise DimError(f"an argument has the dims {value.dims}, the function needs {missing[0]!r}.")


def _ordered(value: object, own: Sequence[str]) -> object:
    """Return an argument as a positional array, its axes in the order of the signature."""
    return value.transpose(*own).data if isinstance(value, XTensor) else value


def read_dims(dims: object) -> object:
    """Return dims as they are given, a text with an arrow as a signature."""
    return Signature.read(dims) if isinstance(dims, str) and "->" in dims else dims

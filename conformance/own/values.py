"""The generic checks of a function: shape and values of drawn calls, and dtypes of fixed ones."""

import time
import zlib

import numpy as np

from conformance import spec
from conformance.libraries import Library
from conformance.own import compare
from conformance.own.check import Check, Mismatch, Options, OutOfTime, Skip, describe
from conformance.own.draw import Drawn, Fixed, Probe
from conformance.own.dtype_rules import expected_dtypes
from conformance.own.recipes import RECIPES, Case

SHRINKING = 1.5  # seconds for a smaller example once one has failed


def function_of(library: Library, key: str):
    """Return what a case calls when it brings nothing of its own."""
    return lambda xp, *args, **kwargs: library.get(key)(*args, **kwargs)


def call(library: Library, key: str, case: Case) -> object:
    """Call the function with the library's arrays; an exception names the call."""
    args, kwargs = case.given(library)
    act = case.call or function_of(library, key)
    return act(library.xp, *args, **kwargs)


def parts(out: object) -> list:
    """Return the arrays of a result: the result itself, or the members of a tuple."""
    return list(out) if isinstance(out, tuple | list) else [out]


def judge_shape(library: Library, case: Case, out: object) -> None:
    """Demand the shapes of the answer."""
    if case.plain or case.expected is None:
        return
    wanted = parts(case.expected)
    found = parts(out)
    if len(found) != len(wanted):
        raise Mismatch(f"{len(found)} results, expected {len(wanted)}")
    for a, e in zip(found, wanted, strict=True):
        if not library.is_array(a):
            raise Mismatch(f"the result is a {type(a).__name__}, no array")
        compare.shape(a, np.shape(e))


def judge_values(library: Library, case: Case, out: object) -> None:
    """Demand the values of the answer."""
    if case.plain:
        same = np.array_equal(out, case.expected)
        if not same or isinstance(out, tuple) != isinstance(case.expected, tuple):
            raise Mismatch(f"{out!r}, expected {case.expected!r}")
        return
    found = [library.numpy(a) for a in parts(out)]
    if case.verify is not None:
        case.verify(found)
        return
    judge_shape(library, case, out)
    for a, e, stated in zip(found, parts(case.expected), parts(out), strict=True):
        compare.dtype(str(a.dtype), library.dtype_name(stated.dtype), "the computed value")
        compare.values(a, e, case.scale)


def drawn(library: Library, check: Check, options: Options, judge) -> None:
    """Draw calls with hypothesis, seeded by the check's name; the smallest failure is reported."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    demand_name(library, check.entry)
    make = RECIPES[check.entry]
    missing = [n for n in spec.DTYPES if n not in library.dtypes]
    failures: list[tuple[float, str]] = []

    @st.composite
    def cases(draw):
        return make(Drawn(draw, missing))

    @seed(zlib.crc32(check.id.encode()))
    @settings(
        max_examples=options.examples, deadline=None, database=None, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
    )  # fmt: skip
    @given(cases())
    def property_holds(case):
        try:
            judge(library, check.entry, case)
        except Skip:
            raise
        except Exception as error:
            why = str(error) if isinstance(error, Mismatch) else describe(error)
            failures.append((time.monotonic(), f"{case.text(check.entry)}: {why}"))
            if time.monotonic() - failures[0][0] > SHRINKING:
                raise OutOfTime from None
            raise

    try:
        property_holds()
    except OutOfTime:
        if not failures:
            raise
    except Skip:
        raise
    except Exception:
        if not failures:
            raise
    if failures:
        raise Mismatch(failures[-1][1])


def ask_values(library: Library, check: Check, options: Options) -> None:
    """Values agree with the oracle."""

    def judge(library: Library, key: str, case: Case) -> None:
        judge_values(library, case, call(library, key, case))

    drawn(library, check, options, judge)


def ask_shapes(library: Library, check: Check, options: Options) -> None:
    """Shapes agree with the oracle, without looking at values."""

    def judge(library: Library, key: str, case: Case) -> None:
        judge_shape(library, case, call(library, key, case))

    drawn(library, check, options, judge)


def demand_name(library: Library, key: str) -> None:
    """Fail at once, and plainly, when a function of the namespace is missing."""
    if spec.function(key).kind in ("function", "extension_function"):
        library.get(key)


def fixed_dtypes(key: str, missing: list[str]) -> list[tuple[str, ...]]:
    """Return every combination of dtypes that a recipe may ask for first."""
    probe = Probe(missing)
    RECIPES[key](probe)
    if probe.asked is None:
        return [()] * 12
    how, category = probe.asked
    if how == "pair":
        found = spec.promotable(category)
    else:
        found = [(name,) for name in spec.CATEGORIES[category]]
    return [names for names in found if not set(names) & set(missing)]


def ask_dtypes(library: Library, check: Check, options: Options) -> None:
    """The dtypes of results follow the standard's rules, for every dtype and pair of dtypes."""
    entry = spec.function(check.entry)
    demand_name(library, check.entry)
    missing = [n for n in spec.DTYPES if n not in library.dtypes]
    wrong: list[str] = []
    tried = 0
    for i, given in enumerate(fixed_dtypes(check.entry, missing)):
        case = RECIPES[check.entry](Fixed(given, i, missing))
        wanted = expected_dtypes(entry, case, library)
        if wanted is None:
            continue
        tried += 1
        try:
            found = parts(call(library, check.entry, case))
            if len(wanted) == 1:
                wanted = wanted * len(found)
            for a, e in zip(found, wanted, strict=True):
                if not library.is_array(a):
                    raise Mismatch(f"the result is a {type(a).__name__}, no array")
                compare.dtype(library.dtype_name(a.dtype), e)
        except Exception as error:
            why = str(error) if isinstance(error, Mismatch) else describe(error)
            wrong.append(f"{case.text(check.entry)}: {why}")
    if not tried:
        raise Skip("no rule for dtypes")
    if wrong:
        more = f" (and {len(wrong) - 1} more combinations)" if len(wrong) > 1 else ""
        raise Mismatch(wrong[0] + more)

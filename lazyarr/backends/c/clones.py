"""Our own vector functions as functions that loops call, in programs that use them often.

Written into a loop, `exp` costs the compiler 12 to 20 ms for each use and `gammaln` 45; called,
they cost 1 ms, and a loop of a hundred runs 6 % longer. gcc makes a vector version of a function
for each `simdlen` that is asked for, and calls the one that fits the vectors of a loop.
"""

import re
from collections.abc import Iterable, Mapping

from lazyarr.backends.c.vecmath import INLINE

MUCH = 20_000  # characters of a function times its uses, from which it is called
WIDTHS = 16, 32, 64  # bytes of a vector
CALLED = "static __attribute__((noinline, const))"
_HEAD = re.compile(re.escape(INLINE) + r" (double|float) (\w+)\(")


def called(support: Mapping[str, str], bodies: Iterable[str]) -> dict[str, str]:
    """Return the texts of support functions, those used often as functions with vector versions."""
    whole = "\n".join(bodies)
    out = {}
    for key, text in support.items():
        head = _HEAD.match(text)
        if head is not None and whole.count(f" {head[2]}(") * _length(text, support) >= MUCH:
            text = with_versions(text)
        out[key] = text
    return out


def with_versions(text: str) -> str:
    """Return a function as one of which loops call vector versions.

    >>> print(with_versions(INLINE + " double vexp_float64(double x) { return x; }"))
    #pragma omp declare simd notinbranch simdlen(2)
    #pragma omp declare simd notinbranch simdlen(4)
    #pragma omp declare simd notinbranch simdlen(8)
    static __attribute__((noinline, const)) double vexp_float64(double x) { return x; }
    """
    size = 8 if text.startswith(f"{INLINE} double") else 4
    lines = [f"#pragma omp declare simd notinbranch simdlen({w // size})" for w in WIDTHS]
    return "\n".join([*lines, text.replace(INLINE, CALLED, 1)])


def _length(text: str, support: Mapping[str, str]) -> int:
    """Return the characters of a function and of those that are written into it."""
    inner = (t for name, t in support.items() if f"){name}(" in text and t is not text)
    return len(text) + sum(map(len, inner))


def probe() -> str:
    """Return a source with a loop over such a function, which shows whether there are versions."""
    text = f"{INLINE} double lazyarr_called(double x) {{ return x * x + 1; }}"
    loop = (
        "void lazyarr_loop(double *restrict y, const double *restrict x) {\n"
        "#pragma omp simd\nfor (int i = 0; i < 64; i++) y[i] = lazyarr_called(x[i]); }\n"
    )
    return f"{with_versions(text)}\n{loop}"


def has_versions(library: bytes) -> bool:
    """Tell whether a library built from the probe holds vector versions."""
    return re.search(rb"_ZGV[a-zA-Z]N\d+v_lazyarr_called\0", library) is not None

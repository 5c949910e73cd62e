"""Special values, from `special_cases.txt`: every rule on every sample that it speaks of.

>>> rule = [r for r in rules() if r.function == "add"][2]
>>> rule.text
'+inf, -inf -> nan'
"""

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from conformance import spec
from conformance.libraries import Library
from conformance.own.check import Check, Mismatch, Options, Skip

PATH = Path(__file__).with_name("special_cases.txt")
# All of them exact in single precision.
SAMPLES = [
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 2.5,
    -2.5, 3.0, -3.0, 10.25, -10.25,
]  # fmt: skip


def negative(x: float) -> bool:
    """Tell whether the sign bit is set."""
    return math.copysign(1, x) < 0


def _odd(x: float) -> bool:
    return math.isfinite(x) and x % 2 == 1


PREDICATES: dict[str, Callable[[float], bool]] = {
    "any": lambda x: True,
    "nan": math.isnan,
    "inf": math.isinf,
    "+inf": lambda x: x == math.inf,
    "-inf": lambda x: x == -math.inf,
    "0": lambda x: x == 0,
    "+0": lambda x: x == 0 and not negative(x),
    "-0": lambda x: x == 0 and negative(x),
    "1": lambda x: x == 1,
    "-1": lambda x: x == -1,
    "fin": math.isfinite,
    "nonzero": lambda x: math.isfinite(x) and x != 0,
    "pos": lambda x: math.isfinite(x) and x > 0,
    "neg": lambda x: math.isfinite(x) and x < 0,
    ">0": lambda x: x > 0,
    "<0": lambda x: x < 0,
    ">1": lambda x: x > 1,
    "<1": lambda x: x < 1,
    "<-1": lambda x: x < -1,
    "|>1|": lambda x: abs(x) > 1,
    "|<1|": lambda x: abs(x) < 1,
    "|1|": lambda x: abs(x) == 1,
    "odd": _odd,
    "int": lambda x: math.isfinite(x) and x == round(x),
    "ties": lambda x: math.isfinite(x) and abs(x) % 1 == 0.5,
}


def holds(predicate: str, x: float) -> bool:
    """Tell whether a value is what a predicate says."""
    for part in predicate.split("&"):
        wanted = not part.startswith("!")
        if PREDICATES[part.lstrip("!")](x) != wanted:
            return False
    return True


@dataclass(frozen=True)
class Rule:
    """One line: predicates for the operands, and the result."""

    function: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    kind: str  # "real", "complex" or "reduction"
    turned: str = ""  # "conj", "odd": the mirrored operand; "sinh", ...: turned by the unit
    mirror: tuple[int, int] = (1, 1)

    @property
    def text(self) -> str:
        """The rule as it is written, and how it was turned."""
        joint = " ; " if self.kind == "complex" else ", "
        out = f"{joint.join(self.operands)} -> {' ; '.join(self.results)}"
        return out + (f" ({self.turned})" if self.turned else "")

    def samples(self) -> list[tuple[float, ...]]:
        """Return the operands that the rule speaks of; a complex one is its components."""
        if self.kind == "reduction":
            return [tuple(float(v) for v in self.operands[0].strip("[]").split())]
        return [
            values
            for values in itertools.product(SAMPLES, repeat=len(self.operands))
            if all(self._holds(i, values) for i in range(len(values)))
        ]

    def _holds(self, i: int, values: tuple) -> bool:
        predicate = self.operands[i]
        if predicate == "=x1":
            return values[i] == values[0]
        if predicate == "=-x1":
            return values[i] == -values[0]
        return holds(predicate, values[i])


@cache
def rules() -> tuple[Rule, ...]:
    """Return every rule, with those that symmetry adds for complex functions."""
    marks: dict[str, list[str]] = {"@conj": [], "@odd": []}
    sources: list[tuple[str, str]] = []
    found: list[Rule] = []
    for line in PATH.read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("@from"):
            sources.append((line.split()[1], line.split()[2]))
        elif line.startswith("@"):
            marks[line.split()[0]] += line.split()[1:]
        else:
            found.append(_parse(line))
    found = _mirrored(found, "conj", marks["@conj"], (1, -1))
    found = _mirrored(found, "odd", marks["@odd"], (-1, -1))
    for name, source in sources:
        found += [
            replace(r, function=name, turned=f"{source} {r.turned}".strip())
            for r in found
            if r.function == source and r.kind == "complex"
        ]
    return tuple(found)


def _parse(line: str) -> Rule:
    function, rest = line.split(": ", 1)
    left, right = (part.strip() for part in rest.split("->"))
    results = tuple(p.strip() for p in right.split(";"))
    if left.startswith("["):
        return Rule(function, (left,), results, "reduction")
    if ";" in left:
        return Rule(function, tuple(p.strip() for p in left.split(";")), results, "complex")
    return Rule(function, tuple(p.strip() for p in left.split(",")), results, "real")


def _mirrored(found: list[Rule], name: str, functions: list[str], mirror: tuple) -> list[Rule]:
    out = list(found)
    for r in found:
        if r.kind == "complex" and r.function in functions:
            both = (r.mirror[0] * mirror[0], r.mirror[1] * mirror[1])
            out.append(replace(r, turned=f"{r.turned} {name}".strip(), mirror=both))
    return out


# -- results --------------------------------------------------------------------------------------


def accepts(result: str, got: float, values: tuple, strict: bool) -> bool:
    """Tell whether a component of a result is what a rule says."""
    options = result.split(" or ")
    return any(_is(o, got, values) for o in (options[:1] if strict else options))


def _is(result: str, got: float, values: tuple) -> bool:
    if result in ("True", "False"):
        return bool(got) == (result == "True")
    if result in ("+", "-"):
        return not math.isnan(got) and negative(got) == (result == "-")
    if result.startswith("~"):
        wanted, either = _approximation(result[1:])
        return math.isclose(abs(got) if either else got, wanted, rel_tol=1e-5)
    wanted = _value(result, values)
    if math.isnan(wanted):
        return math.isnan(got)
    unsigned = result in ("0", "inf")
    return got == wanted and negative(got) == negative(wanted) or (unsigned and abs(got) == wanted)


def _approximation(text: str) -> tuple[float, bool]:
    """Read pi/2, -3pi/4, or +-pi/2 for either sign."""
    either = text.startswith("+-")
    sign, factor, part = re.fullmatch(r"(-?)(\d?)pi(?:/(\d))?", text.removeprefix("+-")).groups()
    wanted = int(factor or 1) * math.pi / int(part or 1)
    return (-wanted if sign else wanted), either


def _value(result: str, values: tuple) -> float:
    x1, x2 = values[0], values[-1]
    named = {
        "x1": x1, "x2": x2, "-x1": -x1, "|x1|": abs(x1), "|x2|": abs(x2), "-|x1|": -abs(x1),
        "|a|": abs(x1), "|b|": abs(x2),
    }  # fmt: skip
    if result in named:
        return named[result]
    if result == "even":
        return math.copysign(round(x1), x1)
    if "*" in result:
        wave, size = result.split("*")
        factor = math.cos(x2) if wave == "cos" else math.sin(x2)
        return factor * (math.inf if size == "inf" else 0.0)
    return float(result)


# -- the check ------------------------------------------------------------------------------------


def ask_special(library: Library, check: Check, options: Options) -> None:
    """A rule holds for all its samples, in both precisions."""
    function = library.get(check.entry)
    rule = _by_check()[check.entry, check.detail]
    precisions = ("complex64", "complex128") if rule.kind == "complex" else ("float32", "float64")
    tried = [name for name in precisions if name in library.dtypes]
    if not tried:
        raise Skip(f"the library has none of {', '.join(precisions)}")
    for dtype in tried:
        if rule.kind == "reduction":
            _ask_reduction(library, function, rule, dtype)
        else:
            _ask_elements(library, function, rule, dtype)


@cache
def _by_check() -> dict[tuple[str, str], Rule]:
    return {(r.function, r.text): r for r in rules()}


def _ask_reduction(library: Library, function: Callable, rule: Rule, dtype: str) -> None:
    values = rule.samples()[0]
    out = library.numpy(function(library.array(np.array(values, dtype=dtype))))
    if not accepts(rule.results[0], out.item(), (0.0,), library.strict):
        raise Mismatch(f"{rule.function}({list(values)}, {dtype}) is {out.item()}")


def _ask_elements(library: Library, function: Callable, rule: Rule, dtype: str) -> None:
    samples = rule.samples()
    if rule.kind == "complex":
        arrays = [_complex([operand(rule, v) for v in samples], dtype)]
    else:
        arrays = [np.array(column, dtype=dtype) for column in zip(*samples, strict=True)]
    out = library.numpy(function(*(library.array(a) for a in arrays)))
    for i, values in enumerate(samples):
        got = components(rule, out[i])
        if len(got) != len(rule.results):
            raise Mismatch(f"{rule.function} of {dtype} gives {out.dtype}")
        for result, g in zip(rule.results, got, strict=True):
            if not accepts(result, g, values, library.strict):
                given = ", ".join(str(a[i]) for a in arrays)
                raise Mismatch(f"{rule.function}({given}) in {dtype} is {out[i]}")


def _complex(pairs: list[tuple[float, float]], dtype: str) -> np.ndarray:
    out = np.empty(len(pairs), dtype=dtype)
    out.real, out.imag = [p[0] for p in pairs], [p[1] for p in pairs]
    return out


def operand(rule: Rule, values: tuple[float, float]) -> tuple[float, float]:
    """Return the components of the operand, mirrored and turned."""
    a, b = values[0] * rule.mirror[0], values[1] * rule.mirror[1]
    return (b, -a) if _source(rule) else (a, b)


def components(rule: Rule, got: object) -> tuple[float, ...]:
    """Return the components of a result, turned and mirrored back to those of the rule."""
    if not isinstance(got, np.complexfloating):
        return (float(got),)
    p, q = float(got.real), float(got.imag)
    if _source(rule) and rule.function != "cos":
        p, q = -q, p  # f(x) = -1j * g(x * 1j)
    if rule.mirror == (1, 1):
        return p, q
    if rule.mirror == (1, -1):
        return p, -q
    if rule.mirror == (-1, -1):
        return -p, -q
    return -p, q  # both mirrored


def _source(rule: Rule) -> bool:
    return rule.turned.split(" ")[0] in ("asinh", "atanh", "sinh", "tanh", "cosh")


def checks() -> list[Check]:
    """Return a check for every rule."""
    return [
        Check(spec.function(r.function).chapter, r.function, "special", ask_special, r.text)
        for r in rules()
    ]

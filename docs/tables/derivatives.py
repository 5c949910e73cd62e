"""Writes the table of docs/derivatives.md: `python -m docs.tables.derivatives`, from the root."""

from pathlib import Path

from lazyarr.autodiff.reverse import pullback
from lazyarr.errors import GradientError
from lazyarr.graph.op import NoGradient, Op
from lazyarr.graph.registry import OPS, op
from tests.autodiff.derivative import Recording, dot, smooth

PAGE = Path(__file__).resolve().parents[1] / "derivatives.md"
START, END = "<!-- table: generated -->\n", "<!-- end of table -->\n"
HIGHEST = 3  # orders tried; beyond it nothing new happens

CONVENTIONS = {
    "abs": "0 at 0",
    "atan2": "0 at the origin",
    "betainc": "by a and b of any order, by Taylor arithmetic on the host",
    "cholesky": "symmetric cotangent",
    "clip": "at a bound 1 to x, 0 to the bound",
    "copysign": "0 to the sign",
    "cumulative_prod": "exact at zeros, no division",
    "det": "adjugate, also of a singular matrix",
    "eig": "NaN for equal eigenvalues; vectors have norm 1",
    "eigh": "symmetric cotangent; vectors of equal values NaN",
    "eigvalsh": "finite for equal values",
    "gammainc": "by a of any order, by Taylor arithmetic on the host",
    "gammaincc": "by a of any order, by Taylor arithmetic on the host",
    "hypot": "0 at the origin",
    "logaddexp": "1/2 each for equal operands, also -inf",
    "logsumexp": "shifted softmax; 0 where all is -inf",
    "matrix_norm": "0 at 0",
    "max": "k ties share, 1/k each",
    "maximum": "ties share, 1/2 each",
    "min": "k ties share, 1/k each",
    "minimum": "ties share, 1/2 each",
    "nextafter": "1 to x1",
    "polygamma": "the next order; not by the order, a Python int",
    "pow": "no log for a whole constant power; 0 at 0 ** 0; NaN to the power of a negative base",
    "prod": "exact at zeros, no division",
    "qr": "reduced, no fewer rows than columns",
    "remainder": "1 and -floor(x1 / x2)",
    "sign": "0 for real numbers",
    "sort": "the permutation",
    "sqrt": "inf at 0, 0 for a zero cotangent",
    "std": "0 at 0",
    "stop_gradient": "a constant",
    "svd": "not with full_matrices, unless square; vectors of equal values NaN",
    "svdvals": "finite for equal values",
    "take": "duplicates add",
    "take_along_axis": "duplicates add",
    "vector_norm": "0 at 0",
    "xlogy": "0 to y where x is 0",
    "xlog1py": "0 to y where x is 0",
} | dict.fromkeys(("ceil", "floor", "floor_divide", "round", "trunc"), "0")


def reverse(record: Op) -> str:
    """How reverse mode differentiates an op."""
    return "by its expansion" if record.vjp is None else "rule"


def forward(record: Op) -> str:
    """How forward mode differentiates an op."""
    if isinstance(record.jvp, str):
        return record.jvp.partition(":")[0]
    if record.jvp is not None:
        return "rule"
    if record.kind == "elementwise":
        return "diagonal"
    return "by its expansion" if record.kind == "composite" else "transposed twice"


def orders(name: str) -> str:
    """How often an op can be differentiated."""
    samples = smooth(name)
    if not samples:
        return "any"
    recording = Recording(samples[0])
    if not recording.wrt:
        return "any"
    value, one = dot(recording.outputs, recording.seeds), op.full((), 1.0)
    for order in range(1, HIGHEST + 1):
        try:
            found = pullback([value], recording.wrt, [one])
        except GradientError:
            return str(order - 1)
        pairs = [(g, t) for g, t in zip(found, recording.tangents, strict=True) if g is not None]
        value = dot([g for g, _ in pairs], [t for _, t in pairs])
    return "any"


def table() -> str:
    """Both tables as text."""
    public = sorted((o for o in OPS.values() if o.public), key=lambda o: o.name)
    known = [o for o in public if not isinstance(o.vjp, NoGradient)]
    rows = ["| op | kind | reverse | forward | orders | convention |", "|---|---|---|---|---|---|"]
    rows += [
        f"| {o.name} | {o.kind} | {reverse(o)} | {forward(o)} | {orders(o.name)} | "
        f"{CONVENTIONS.get(o.name, '')} |"
        for o in known
    ]
    rows += ["", "Without a derivative:", "", "| reason | ops |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for o in public:
        if isinstance(o.vjp, NoGradient):
            reasons.setdefault(o.vjp.reason, []).append(o.name)
    rows += [f"| {reason} | {', '.join(names)} |" for reason, names in sorted(reasons.items())]
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The page with the table made anew."""
    before, _, rest = text.partition(START)
    return before + START + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

"""Instructions that the main kernels take, counted by callgrind: they may only become fewer.

Counts do not depend on the machine's load. They do on the compiler: `COUNTS` are those of gcc 12
with -march=x86-64-v3 (valgrind knows no AVX-512); with another gcc the test is skipped.
"""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import lazyarr as xp
from benchmarks.rows import ROWS, on
from lazyarr.backends.c import compiler
from lazyarr.backends.c.print import to_c
from lazyarr.backends.loop.plan import plan
from lazyarr.graph.shapes import bind
from lazyarr.graph.traverse import Graph
from lazyarr.namespace.array import unwrap
from lazyarr.passes import pipeline

pytestmark = [pytest.mark.backends, pytest.mark.slow]

SLACK = 1.05
COUNTS = {
    "transcendental 1e+04": 375_829,
    "memory 1e+04": 22_527,
    "logpdf sum": 26_747,
    "logsumexp last": 181_040,
    "logsumexp short": 19_770,
    "softmax last": 191_966,
    "softmax first": 182_513,
    "softmax short": 18_325,
    "log_softmax last": 200_150,
    "log_softmax short": 22_570,
    "variance last": 30_960,
    "variance first": 19_264,
    "variance short": 4_688,
    "normalise last": 30_373,
    "normalise short": 8_073,
    "pairwise": 216_899,
    "with transpose": 28_732,
}

HEAD = """__attribute__((noipa)) __INT64_TYPE__ kernel(
  void **, const __INT64_TYPE__ *, void *, void **);
"""
MAIN = """
void *aligned_alloc(unsigned long, unsigned long);
int printf(const char *, ...);
int main(void) {{
  int64_t dim[] = {{{dims}}};
  void *fn[64] = {{0}}, *buf[] = {{{buffers}}};
  unsigned long state = 1;
{fill}
  int64_t code = kernel(buf, dim, aligned_alloc(64, kernel_arena(dim) + 64), fn);
  printf("%ld\\n", (long)code);
  return (int)code;
}}
"""


def program(name: str) -> str:
    """A row's C source with a `main` that calls it on arrays of small sizes."""
    row = next(r for r in ROWS if r.name == name)
    full = row.arguments(np.random.default_rng(0))
    shapes = [tuple(min(n, 100 if np.ndim(a) > 1 else 10_000) for n in np.shape(a)) for a in full]
    symbols = [
        xp.symbol(f"x{k}", dtype="float64", shape=(None,) * len(s)) for k, s in enumerate(shapes)
    ]
    graph = pipeline.run(Graph([unwrap(s) for s in symbols], [unwrap(on(row, xp)(*symbols))]))
    planned = plan(graph)
    source = to_c(planned, vector=compiler.find_compiler().vector)
    env = bind((t.shape for t in planned.inputs), shapes)
    sizes = [*shapes, *planned.output_shapes(env)]
    counts = [max(1, int(np.prod(s))) for s in sizes]
    main = MAIN.format(
        dims=", ".join(str(env[a]) for a in planned.atoms) or "0",
        buffers=", ".join(f"aligned_alloc(64, {(n * 8 + 63) // 64 * 64})" for n in counts),
        fill="\n".join(
            f"  for (int i = 0; i < {n}; i++) ((double *)buf[{k}])[i] = "
            "(double)((state = state * 6364136223846793005ul + 1) >> 40) / 16777216 + 0.5;"
            for k, n in enumerate(counts[: len(shapes)])
        ),
    )
    return HEAD + source.text + main


def instructions(name: str, folder: Path) -> int:
    """Instructions of one call of a row's program."""
    found = compiler.find_compiler()
    (folder / "p.c").write_text(program(name))
    flags = [f for f in found.flags if not f.startswith("-march")]
    build = [*found.command, "-O3", "-march=x86-64-v3", *flags, "-o", "p", "p.c", *found.link]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    command = ["valgrind", "--tool=callgrind", "--toggle-collect=kernel"]
    done = subprocess.run(
        [*command, "--callgrind-out-file=/dev/null", "./p"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


@pytest.mark.parametrize("name", COUNTS)
def test_instructions(name: str, tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not here")
    version = compiler.find_compiler().version
    if " 12." not in version or "clang" in version:
        pytest.skip(f"the counts are those of gcc 12, this is {version}")
    count = instructions(name, tmp_path)
    assert count <= COUNTS[name] * SLACK, f"{name}: {count}"

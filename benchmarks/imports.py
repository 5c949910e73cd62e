"""`import lazyarr` against `import numpy`: CPU time of fresh processes, interleaved. Bar: 1.5.

Bare Python's start is taken off both. The first round, which writes byte code, is not counted.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import timing

BAR = 1.5
ROUNDS = 15
ROOT = Path(__file__).resolve().parents[1]


def spent(code: str) -> float:
    """CPU seconds of a fresh interpreter that runs some code."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


def main() -> None:
    """Print the three medians and the ratio."""
    timing.one_thread()
    codes = {"python": "pass", "numpy": "import numpy", "lazyarr": "import lazyarr"}
    rounds = [{name: spent(code) for name, code in codes.items()} for _ in range(ROUNDS + 1)][1:]
    middle = {name: statistics.median(entry[name] for entry in rounds) for name in codes}
    ratio = (middle["lazyarr"] - middle["python"]) / (middle["numpy"] - middle["python"])
    print("import, over bare Python (CPU seconds of fresh processes)")
    for name in ("numpy", "lazyarr"):
        print(f"  {name:8s} {middle[name] - middle['python']:6.3f} s")
    print(f"  ratio    {ratio:6.2f}     bar {BAR}: {timing.verdict(ratio, BAR)}")


if __name__ == "__main__":
    main()

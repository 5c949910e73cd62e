"""Eight threads record, force and compile the same and different graphs, round after round.

    python -m tests.backends.fuzz_threads 300 c jax

Each round, all threads get one shared handle that nobody has computed, and force it at once; beside
it each records an expression of its own of a drawn structure, compiles a function of a drawn
structure and calls it, differentiates, and writes out what it got. `rounds` returns what is wrong.
"""

import random
import sys
import threading
import time

import numpy as np

import lazyarr as xp

THREADS = 8

STRUCTURES = (
    (lambda x, k: xp.sum(xp.exp(-x) * k), lambda a, k: np.sum(np.exp(-a) * k)),
    (lambda x, k: xp.max(x * x) + k, lambda a, k: np.max(a * a) + k),
    (lambda x, k: xp.sum(x[1:] - x[:-1]) * k, lambda a, k: np.sum(a[1:] - a[:-1]) * k),
    (lambda x, k: xp.std(xp.sin(x)) - x[0] * k, lambda a, k: np.std(np.sin(a)) - a[0] * k),
    (lambda x, k: xp.sum(xp.cumulative_sum(x) * k), lambda a, k: np.sum(np.cumsum(a) * k)),
    (lambda x, k: xp.sum(xp.where(x > 0, x, k)), lambda a, k: np.sum(np.where(a > 0, a, k))),
)  # fmt: skip


class Round:
    """What all threads of a round share: a barrier, a handle, and the place for problems."""

    def __init__(self, number: int, backend: str):
        self.number, self.backend = number, backend
        self.start = threading.Barrier(THREADS)
        self.data = np.linspace(0.1, 1.0, 5 + number % 7) + number
        x = xp.asarray(self.data)
        self.inner = xp.exp(x / (1 + number)) * 2
        self.handle = xp.sum(self.inner) + (number % 3)
        self.want = np.sum(np.exp(self.data / (1 + number)) * 2) + number % 3
        self.wrong: list[str] = []

    def check(self, got: object, want: object, what: str) -> None:
        """Note a value that is not right."""
        if not np.allclose(got, want, rtol=1e-9, atol=1e-11):
            self.wrong.append(f"round {self.number}, {what}: {got!r}, expected {want!r}")

    def work(self, seed: int) -> None:
        """What one thread does."""
        draw = random.Random(f"{self.number} {seed}")
        try:
            self.start.wait(60)
            self.check(float(self.handle), self.want, "shared handle")
            f, reference = draw.choice(STRUCTURES)
            a = np.array([draw.gauss(0, 1) for _ in range(draw.randint(2, 9))])
            k = draw.uniform(0.5, 2)
            self.check(float(f(xp.asarray(a), k)), reference(a, k), "own expression")
            kept = 2 * np.exp(self.data / (1 + self.number))
            self.check(np.asarray(self.inner), kept, "kept")
            if self.number % 3 == 0:
                f, reference = draw.choice(STRUCTURES[:4])
                x = xp.symbol("x", shape=(None,))
                g = xp.function([x], xp.value_and_grad(f(x, 1.5), x), backend=self.backend)
                value, slope = g(a)
                self.check(value, reference(a, 1.5), "function")
                step = np.zeros_like(a)
                step[-1] = 1e-6
                rise = (reference(a + step, 1.5) - reference(a - step, 1.5)) / 2e-6
                if abs(slope[-1] - rise) > 1e-5 * (1 + abs(rise)):
                    self.wrong.append(f"round {self.number}, gradient: {slope[-1]}, {rise}")
        except BaseException as error:  # threads hide what they raise
            self.wrong.append(f"round {self.number}: {error!r}")


def rounds(n: int, backend: str) -> list[str]:
    """Run rounds on a backend; return what went wrong."""
    wrong: list[str] = []
    before = xp.get_options().backend
    xp.set_options(backend=backend)  # for all threads
    try:
        for number in range(n):
            one = Round(number, backend)
            threads = [threading.Thread(target=one.work, args=(s,)) for s in range(THREADS)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(300)
            hang = [f"round {number}: a thread hangs" for t in threads if t.is_alive()]
            wrong += one.wrong + hang
            if len(wrong) > 20:
                break
    finally:
        xp.set_options(backend=before)
    return wrong


def main() -> None:
    """Run as many rounds as the first argument says, on the backends of the others."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for backend in sys.argv[2:] or ["c"]:
        start = time.perf_counter()
        wrong = rounds(n, backend)
        seconds = time.perf_counter() - start
        print(f"{backend}: {n} rounds of {THREADS} threads in {seconds:.0f} s, {len(wrong)} wrong")
        for line in wrong[:20]:
            print(f"  {line}")
        if wrong:
            raise SystemExit(1)


if __name__ == "__main__":
    main()

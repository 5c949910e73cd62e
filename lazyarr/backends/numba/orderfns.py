"""Sorting and searching in Numba programs: runs by insertion, then merged; NaN is the largest."""

from lazyarr.backends.numba.mathfns import FUNCTIONS, NEEDS


def _define(name: str, text: str, *needs: str) -> None:
    FUNCTIONS[name], NEEDS[name] = text.strip("\n"), needs


_define(
    "before",
    """
def before(a, b):
    return a < b or (b != b and a == a)
""",
)
_define(
    "ordered",
    """
def ordered(value, place, held, room, n):
    for a in range(0, n, 8):
        for i in range(a + 1, min(a + 8, n)):
            v, p, j = value[i], place[i], i
            while j > a and before(v, value[j - 1]):
                value[j] = value[j - 1]
                place[j] = place[j - 1]
                j -= 1
            value[j] = v
            place[j] = p
    width = 8
    while width < n:
        for a in range(0, n, 2 * width):
            b = min(a + width, n)
            end = min(b + width, n)
            i, j = a, b
            for o in range(a, end):
                if j < end and (i >= b or before(value[j], value[i])):
                    held[o] = value[j]
                    room[o] = place[j]
                    j += 1
                else:
                    held[o] = value[i]
                    room[o] = place[i]
                    i += 1
        for o in range(n):
            value[o] = held[o]
            place[o] = room[o]
        width *= 2
""",
    "before",
)
_define(
    "sort",
    """
def sort(out, x, outer, n, inner, falling):
    value, held = np.empty(n, x.dtype), np.empty(n, x.dtype)
    place, room = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for r in range(outer * inner):
        start = r // inner * n * inner + r % inner
        for i in range(n):
            value[i] = x[start + i * inner]
        ordered(value, place, held, room, n)
        for i in range(n):
            out[start + (n - 1 - i if falling else i) * inner] = value[i]
    return 0
""",
    "ordered",
)
_define(
    "argsort",
    """
def argsort(out, x, outer, n, inner, falling):
    value, held = np.empty(n, x.dtype), np.empty(n, x.dtype)
    place, room = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for r in range(outer * inner):
        start = r // inner * n * inner + r % inner
        for i in range(n):
            k = n - 1 - i if falling else i
            value[i] = x[start + k * inner]
            place[i] = k
        ordered(value, place, held, room, n)
        for i in range(n):
            out[start + (n - 1 - i if falling else i) * inner] = place[i]
    return 0
""",
    "ordered",
)
_define(
    "search",
    """
def search(out, x, v, n, m, right):
    for i in range(m):
        value = v[i]
        base, left = 0, n
        while left > 0:
            half = left // 2
            seen = x[base + half]
            up = (not before(value, seen)) if right else before(seen, value)
            if up:
                base += left - half
            left = half
        out[i] = base
    return 0
""",
    "before",
)

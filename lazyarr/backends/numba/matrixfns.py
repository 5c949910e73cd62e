"""Decompositions and Fourier transforms in Numba programs, by functions of LAPACK and NumPy.

A program gets the addresses of these functions beside its sizes. `call` takes one with arrays and
passes their memory; all of them take pointers alone. LAPACK stores matrices by columns, so each
goes in and comes out transposed. A routine returns 1 where a function failed.
"""

from lazyarr.backends.numba.mathfns import FUNCTIONS, NEEDS

CALLING: set[str] = set()  # routines that take addresses


def _define(name: str, text: str, *needs: str) -> None:
    text = text.replace(f"def {name.removesuffix('_complex')}(", f"def {name}(")
    FUNCTIONS[name], NEEDS[name] = text.strip("\n"), needs
    if "call" in needs:
        CALLING.add(name.removesuffix("_complex"))


_define(
    "call",
    """
@intrinsic
def call(typing, address, given):
    from llvmlite import ir

    def code(context, builder, signature, args):
        where, packed = args
        byte = ir.IntType(8).as_pointer()
        pointers = []
        for k, t in enumerate(given.types):
            value = builder.extract_value(packed, k)
            if isinstance(t, T.Array):
                value = builder.bitcast(context.make_array(t)(context, builder, value).data, byte)
            else:
                value = builder.inttoptr(value, byte)
            pointers.append(value)
        kind = ir.FunctionType(ir.VoidType(), [byte] * len(pointers))
        builder.call(builder.inttoptr(where, kind.as_pointer()), pointers)
        return context.get_dummy_value()

    return T.void(address, given), code
""",
)
_define(
    "number",
    """
def number(n):
    out = np.empty(1, np.int32)
    out[0] = n
    return out
""",
)
_define(
    "letter",
    """
def letter(n):
    out = np.empty(1, np.uint8)
    out[0] = n
    return out
""",
)
_define(
    "turned",
    """
def turned(out, x, m, n):
    for i in range(m):
        for j in range(n):
            out[j * m + i] = x[i * n + j]
""",
)
_TOOLS = ("call", "number", "letter", "turned")

_define(
    "slogdet",
    """
def slogdet(sign, size, a, batch, n, getrf):
    pivot = np.empty(n, np.int64)
    for b in range(batch):
        factors = a[b * n * n : (b + 1) * n * n].copy().reshape((n, n))
        lu(factors, pivot)
        sign[b] = 1
        size[b] = 0
        for i in range(n):
            d = factors[i, i] if pivot[i] == i else -factors[i, i]
            length = abs(d)
            if length == 0:
                sign[b] = 0
                size[b] = -np.inf
                break
            sign[b] *= d / length
            size[b] += math.log(length)
    return 0
""",
    "lu",
)
CALLING.add("slogdet")

_define(
    "cholesky",
    """
def cholesky(out, x, batch, n, potrf):
    size, info, upper = number(n), number(0), letter(85)  # by columns, the lower is the upper one
    for m in range(batch):
        o = m * n * n
        for i in range(n):
            for j in range(n):
                out[o + i * n + j] = x[o + i * n + j] if j <= i else 0
        if potrf != 0 and n > 8:
            call(potrf, (upper, size, out[o : o + n * n], size, info))
            if info[0]:
                return 1
            continue
        for i in range(n):
            for j in range(i + 1):
                total = out[o + i * n + j]
                for k in range(j):
                    total -= out[o + i * n + k] * out[o + j * n + k]
                if i != j:
                    out[o + i * n + j] = total / out[o + j * n + j]
                elif total > 0:
                    out[o + i * n + i] = math.sqrt(total)
                else:
                    return 1
    return 0
""",
    *_TOOLS,
)

_define(
    "solve_triangular",
    """
def solve_triangular(out, a, b, batch, n, k, lower, trans, unit, trsm):
    side, part, turn = letter(82), letter(85 if lower else 76), letter(84 if trans else 78)
    diagonal, rows, size = letter(85 if unit else 78), number(k), number(n)
    one = np.ones(1, out.dtype)
    for m in range(batch):
        o = m * n * k
        q = m * n * n
        for i in range(n * k):
            out[o + i] = b[o + i]
        if trsm != 0 and n > 8 and k > 0:
            matrix, sides = a[q : q + n * n], out[o : o + n * k]
            call(trsm, (side, part, turn, diagonal, rows, size, one, matrix, size, sides, rows))
            continue
        down = lower != trans
        for s in range(n):
            i = s if down else n - 1 - s
            for p in range(0 if down else i + 1, i if down else n):
                factor = a[q + p * n + i] if trans else a[q + i * n + p]
                for j in range(k):
                    out[o + i * k + j] -= factor * out[o + p * k + j]
            if not unit:
                for j in range(k):
                    out[o + i * k + j] /= a[q + i * n + i]
    return 0
""",
    *_TOOLS,
)

_define(
    "cholesky_complex",
    """
def cholesky(out, x, batch, n, potrf):
    for m in range(batch):
        o = m * n * n
        for i in range(n):
            for j in range(n):
                out[o + i * n + j] = x[o + i * n + j] if j <= i else 0
        for i in range(n):
            for j in range(i + 1):
                total = out[o + i * n + j]
                for k in range(j):
                    total -= out[o + i * n + k] * out[o + j * n + k].conjugate()
                if i != j:
                    out[o + i * n + j] = total / out[o + j * n + j].real
                elif total.real > 0:
                    out[o + i * n + i] = math.sqrt(total.real)
                else:
                    return 1
    return 0
""",
)
_define(
    "qr",
    """
def qr(q, r, x, batch, m, n, complete, geqrf, orgqr):
    k = min(m, n)
    kq = m if complete else k
    if batch == 0 or m == 0:
        return 0
    mi, ni, ki, kqi, info, room = number(m), number(n), number(k), number(kq), number(0), number(-1)
    a = np.zeros(m * max(n, kq) + 1, x.dtype)
    tau = np.zeros(k + 1, x.dtype)
    first = np.zeros(2, x.dtype)
    call(geqrf, (mi, ni, a, mi, tau, first, room, info))
    need = first[0].real
    call(orgqr, (mi, kqi, ki, a, mi, tau, first, room, info))
    work = np.empty(int(max(need, first[0].real)) + 1, x.dtype)
    room[0] = work.size
    for b in range(batch):
        turned(a, x[b * m * n : (b + 1) * m * n], m, n)
        call(geqrf, (mi, ni, a, mi, tau, work, room, info))
        for i in range(kq):
            for j in range(n):
                r[(b * kq + i) * n + j] = a[j * m + i] if i <= j else 0
        if info[0]:
            return 1
        call(orgqr, (mi, kqi, ki, a, mi, tau, work, room, info))
        if info[0]:
            return 1
        turned(q[b * m * kq : (b + 1) * m * kq], a, kq, m)
    return 0
""",
    *_TOOLS,
)

_SVD = """
def svd(u, s, vh, x, batch, m, n, full, vectors, gesdd):
    k = min(m, n)
    mu, nv = (m, n) if full else (k, k)
    if k == 0:
        for i in range(batch * m * mu if vectors else 0):
            u[i] = 1 if i // mu % m == i % mu else 0
        for i in range(batch * nv * n if vectors else 0):
            vh[i] = 1 if i // n % nv == i % n else 0
        return 0
    job = letter((65 if full else 83) if vectors else 78)
    mi, ni, ldv, info, room = number(m), number(n), number(nv), number(0), number(-1)
    a = np.zeros(m * n, x.dtype)
    left = np.empty(m * mu if vectors else 1, x.dtype)
    right = np.empty(nv * n if vectors else 1, x.dtype)
    whole = np.empty(8 * k, np.int32)
    first = np.zeros(2, x.dtype)
    PARTS
    call(gesdd, (job, mi, ni, a, mi, s, left, mi, right, ldv, first, room, MORE whole, info))
    work = np.empty(int(first[0].real) + 1, x.dtype)
    room[0] = work.size
    for b in range(batch):
        turned(a, x[b * m * n : (b + 1) * m * n], m, n)
        own = s[b * k : (b + 1) * k]
        call(gesdd, (job, mi, ni, a, mi, own, left, mi, right, ldv, work, room, MORE whole, info))
        if info[0]:
            return 1
        if vectors:
            turned(u[b * m * mu : (b + 1) * m * mu], left, mu, m)
            turned(vh[b * nv * n : (b + 1) * nv * n], right, n, nv)
    return 0
"""
_PARTS = """size = k * (7 * k + 7 + 2 * max(m, n)) if vectors else 7 * k
    parts = np.empty(size, s.dtype)"""
_define("svd", _SVD.replace("    PARTS\n", "").replace("MORE ", ""), *_TOOLS)
_define("svd_complex", _SVD.replace("PARTS", _PARTS).replace("MORE", "parts,"), *_TOOLS)

_EIGH = """
def eigh(w, v, x, batch, n, vectors, syevd):
    if batch == 0 or n == 0:
        return 0
    job, low = letter(86 if vectors else 78), letter(76)
    ni, room, counts, info = number(n), number(-1), number(-1), number(0)
    a, first, whole = np.zeros(n * n, x.dtype), np.zeros(2, x.dtype), np.zeros(2, np.int32)
    PARTS
    call(syevd, (job, low, ni, a, ni, w, first, room, MORE whole, counts, info))
    work = np.empty(int(first[0].real) + 1, x.dtype)
    room[0] = work.size
    counts[0] = whole[0] + 1
    whole = np.empty(counts[0], np.int32)
    ROOM
    for b in range(batch):
        turned(a, x[b * n * n : (b + 1) * n * n], n, n)
        own = w[b * n : (b + 1) * n]
        call(syevd, (job, low, ni, a, ni, own, work, room, MORE whole, counts, info))
        if info[0]:
            return 1
        if vectors:
            turned(v[b * n * n : (b + 1) * n * n], a, n, n)
    return 0
"""
_define("eigh", _EIGH.replace("    PARTS\n", "").replace("    ROOM\n", "").replace("MORE ", ""),
        *_TOOLS)  # fmt: skip
_define(
    "eigh_complex",
    _EIGH.replace("PARTS", "parts, halves = np.zeros(2, w.dtype), number(-1)")
    .replace("MORE", "parts, halves,")
    .replace("ROOM", "halves[0] = int(parts[0]) + 1\n    parts = np.empty(halves[0], w.dtype)"),
    *_TOOLS,
)

_EIG = """
def eig(w, v, x, batch, n, vectors, geev):
    for i in range(batch * n * n):
        if not (abs(x[i].real) < np.inf and abs(x[i].imag) < np.inf):
            return 1
    if batch == 0 or n == 0:
        return 0
    none, job = letter(78), letter(86 if vectors else 78)
    ni, one, room, info = number(n), number(1), number(-1), number(0)
    a, right = np.zeros(n * n, x.dtype), np.zeros(n * n, x.dtype)
    first = np.zeros(2, x.dtype)
    PARTS
    call(geev, (none, job, ni, a, ni, VALUES, first, one, right, ni, first, room, MORE info))
    work = np.empty(int(first[0].real) + 1, x.dtype)
    room[0] = work.size
    for b in range(batch):
        turned(a, x[b * n * n : (b + 1) * n * n], n, n)
        call(geev, (none, job, ni, a, ni, VALUES, work, one, right, ni, work, room, MORE info))
        if info[0]:
            return 1
        TAKEN
    return 0
"""
_define(
    "eig",
    _EIG.replace("PARTS", "re, im = np.zeros(n, x.dtype), np.zeros(n, x.dtype)")
    .replace("VALUES", "re, im")
    .replace("MORE ", "")
    .replace(
        "TAKEN",
        """for i in range(n):
            w[b * n + i] = complex(re[i], im[i])
        j = 0
        while j < n and vectors:
            pair = im[j] != 0 and j + 1 < n
            for i in range(n):
                o = (b * n + i) * n + j
                y = right[(j + 1) * n + i] if pair else right[j * n + i] * 0
                v[o] = complex(right[j * n + i], y)
                if pair:
                    v[o + 1] = complex(right[j * n + i], -y)
            j += 2 if pair else 1""",
    ),
    *_TOOLS,
)
_define(
    "eig_complex",
    _EIG.replace("PARTS", "parts, own = np.zeros(2 * n, x.real.dtype), np.zeros(n, x.dtype)")
    .replace("VALUES", "own")
    .replace("MORE", "parts,")
    .replace(
        "TAKEN",
        """for i in range(n):
            w[b * n + i] = own[i]
        if vectors:
            turned(v[b * n * n : (b + 1) * n * n], right, n, n)""",
    ),
    *_TOOLS,
)

# -- Fourier transforms: arguments, sizes (outer, in, out), strides in bytes ----------------------

_define(
    "along",
    """
def along(fn, data, out, x, n_scale, norm, outer, n_in, n_out, inner):
    factor = np.ones(1, out.real.dtype)
    if norm == 1:
        factor[0] = 1 / math.sqrt(n_scale)
    elif norm == 2:
        factor[0] = 1 / n_scale
    rows, blocks = (outer, 1) if inner == 1 else (inner, outer)
    size, step, args = np.empty(3, np.int64), np.zeros(5, np.int64), np.empty(3, np.int64)
    size[0], size[1], size[2] = rows, n_in, n_out
    step[0] = (n_in if inner == 1 else 1) * x.itemsize
    step[2] = (n_out if inner == 1 else 1) * out.itemsize
    step[3], step[4] = inner * x.itemsize, inner * out.itemsize
    for b in range(blocks if rows else 0):
        args[0] = x.ctypes.data + b * n_in * inner * x.itemsize
        args[1] = factor.ctypes.data
        args[2] = out.ctypes.data + b * n_out * inner * out.itemsize
        call(fn, (args, size, step, data))
    return factor[0]
""",
    "call",
)
CALLING.discard("along")
_define(
    "fourier",
    """
def fourier(out, x, outer, n, inner, inverse, norm, fft, fft_data, ifft, ifft_data):
    if n < 1:
        return 1
    if inverse:
        along(ifft, ifft_data, out, x, n, 2 - norm, outer, n, n, inner)
    else:
        along(fft, fft_data, out, x, n, norm, outer, n, n, inner)
    return 0
""",
    "along",
)
_define(
    "fourier_half",
    """
def fourier_half(out, x, outer, n, inner, norm, even, even_data, odd, odd_data):
    if n < 1:
        return 1
    if n % 2:
        along(odd, odd_data, out, x, n, norm, outer, n, n // 2 + 1, inner)
    else:
        along(even, even_data, out, x, n, norm, outer, n, n // 2 + 1, inner)
    return 0
""",
    "along",
)
_define(
    "fourier_real",
    """
def fourier_real(out, x, outer, m, inner, n, norm, irfft, data):
    if n < 1 or m < 1:
        return 1
    along(irfft, data, out, x, n, 2 - norm, outer, m, n, inner)
    return 0
""",
    "along",
)
CALLING.update(("fourier", "fourier_half", "fourier_real"))

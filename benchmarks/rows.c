/* Array work written by hand: what a compiler could aim at. Compiled once with T = double and F(x) = x,
   once with T = float and F(x) = x##f. No header is included: the prototypes tell gcc that the math
   library has vector versions. Every function writes results that its caller has made. */

#ifdef VECTOR_MATH
#define VECTOR __attribute__((simd("notinbranch"), const))
#else
#define VECTOR
#endif
VECTOR T F(exp)(T);
VECTOR T F(log)(T);
VECTOR T F(log1p)(T);
T F(sqrt)(T);
T F(fabs)(T);

#define R restrict
#define SIMD _Pragma("omp simd")
#define SUM(s) _Pragma(#s)
#define EACH(i, n) for (long i = 0; i < (n); i++)

void transcendental(long n, const T *R x, T m, T s, T a, T *R out) {
    const T c = 1 / (2 * s * s);
    SIMD EACH(i, n) {
        const T d = x[i] - m;
        out[i] = F(exp)(-(d * d) * c) * a + F(log1p)(F(fabs)(x[i]));
    }
}

void memory(long n, const T *R x, const T *R y, T *R out) {
    SIMD EACH(i, n) out[i] = (x[i] * 2 + 1) * (x[i] - 3) + y[i] * (T)0.5;
}

void logpdf_sum(long n, const T *R x, T mu, T s, T *R out) {
    const T inv = 1 / s, c = F(log)(s) + (T)0.91893853320467274178;
    T sum = 0;
    SUM(omp simd reduction(+ : sum)) EACH(i, n) {
        const T z = (x[i] - mu) * inv;
        sum += (T)-0.5 * z * z - c;
    }
    *out = sum;
}

static inline T largest(long n, const T *R x) {
    T m = -__builtin_inf();
    SUM(omp simd reduction(max : m)) EACH(j, n) m = x[j] > m ? x[j] : m;
    return m;
}

void logsumexp_last(long n, long k, const T *R x, T *R out) {
    EACH(i, n) {
        const T *R p = x + i * k, m = largest(k, p);
        T s = 0;
        SUM(omp simd reduction(+ : s)) EACH(j, k) s += F(exp)(p[j] - m);
        out[i] = m + F(log)(s);
    }
}

void softmax_last(long n, long k, const T *R x, T *R out) {
    EACH(i, n) {
        const T *R p = x + i * k, m = largest(k, p);
        T *R q = out + i * k, s = 0;
        SUM(omp simd reduction(+ : s)) EACH(j, k) s += q[j] = F(exp)(p[j] - m);
        const T inv = 1 / s;
        SIMD EACH(j, k) q[j] *= inv;
    }
}

void log_softmax_last(long n, long k, const T *R x, T *R out) {
    EACH(i, n) {
        const T *R p = x + i * k, m = largest(k, p);
        T *R q = out + i * k, s = 0;
        SUM(omp simd reduction(+ : s)) EACH(j, k) s += F(exp)(p[j] - m);
        const T shift = m + F(log)(s);
        SIMD EACH(j, k) q[j] = p[j] - shift;
    }
}

void variance_last(long n, long k, const T *R x, T *R out) {
    EACH(i, n) {
        const T *R p = x + i * k;
        T m = 0, v = 0;
        SUM(omp simd reduction(+ : m)) EACH(j, k) m += p[j];
        m /= k;
        SUM(omp simd reduction(+ : v)) EACH(j, k) v += (p[j] - m) * (p[j] - m);
        out[i] = v / k;
    }
}

void normalise_last(long n, long k, const T *R x, T *R out) {
    EACH(i, n) {
        const T *R p = x + i * k;
        T *R q = out + i * k, s = 0;
        SUM(omp simd reduction(+ : s)) EACH(j, k) s += p[j] * p[j];
        const T inv = 1 / F(sqrt)(s);
        SIMD EACH(j, k) q[j] = p[j] * inv;
    }
}

/* The same over the first axis: accumulators are a row that stays in the cache. */
static void column_max(long n, long k, const T *R x, T *R m) {
    SIMD EACH(j, k) m[j] = -__builtin_inf();
    EACH(i, n) SIMD EACH(j, k) m[j] = x[i * k + j] > m[j] ? x[i * k + j] : m[j];
}

static void column_exps(long n, long k, const T *R x, const T *R m, T *R s) {
    SIMD EACH(j, k) s[j] = 0;
    EACH(i, n) SIMD EACH(j, k) s[j] += F(exp)(x[i * k + j] - m[j]);
}

void logsumexp_first(long n, long k, const T *R x, T *R out) {
    T m[k], s[k];
    column_max(n, k, x, m);
    column_exps(n, k, x, m, s);
    SIMD EACH(j, k) out[j] = m[j] + F(log)(s[j]);
}

void softmax_first(long n, long k, const T *R x, T *R out) {
    T m[k], s[k];
    column_max(n, k, x, m);
    SIMD EACH(j, k) s[j] = 0;
    EACH(i, n) SIMD EACH(j, k) s[j] += out[i * k + j] = F(exp)(x[i * k + j] - m[j]);
    SIMD EACH(j, k) s[j] = 1 / s[j];
    EACH(i, n) SIMD EACH(j, k) out[i * k + j] *= s[j];
}

void log_softmax_first(long n, long k, const T *R x, T *R out) {
    T m[k], s[k];
    column_max(n, k, x, m);
    column_exps(n, k, x, m, s);
    SIMD EACH(j, k) m[j] += F(log)(s[j]);
    EACH(i, n) SIMD EACH(j, k) out[i * k + j] = x[i * k + j] - m[j];
}

void variance_first(long n, long k, const T *R x, T *R out) {
    T m[k], v[k];
    SIMD EACH(j, k) m[j] = v[j] = 0;
    EACH(i, n) SIMD EACH(j, k) m[j] += x[i * k + j];
    SIMD EACH(j, k) m[j] /= n;
    EACH(i, n) SIMD EACH(j, k) v[j] += (x[i * k + j] - m[j]) * (x[i * k + j] - m[j]);
    SIMD EACH(j, k) out[j] = v[j] / n;
}

void normalise_first(long n, long k, const T *R x, T *R out) {
    T s[k];
    SIMD EACH(j, k) s[j] = 0;
    EACH(i, n) SIMD EACH(j, k) s[j] += x[i * k + j] * x[i * k + j];
    SIMD EACH(j, k) s[j] = 1 / F(sqrt)(s[j]);
    EACH(i, n) SIMD EACH(j, k) out[i * k + j] = x[i * k + j] * s[j];
}

void pairwise(long n, long m, long d, const T *R x, const T *R y, T *R out) {
    EACH(i, n) EACH(j, m) {
        T s = 0;
        SUM(omp simd reduction(+ : s)) EACH(k, d) {
            const T t = x[i * d + k] - y[j * d + k];
            s += t * t;
        }
        out[i * m + j] = s;
    }
}

/* sum over i of (A[i, j] + B[j, i]) * v[j] */
void with_transpose(long n, const T *R a, const T *R b, const T *R v, T *R out) {
    SIMD EACH(j, n) out[j] = 0;
    EACH(i, n) SIMD EACH(j, n) out[j] += (a[i * n + j] + b[j * n + i]) * v[j];
}

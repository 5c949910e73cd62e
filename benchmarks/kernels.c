/* Log density and gradient of two models, written by hand: what a compiler could aim at.

   Each function takes the flat unconstrained parameters `x` and the data, writes the gradient and
   returns the log density. The layout of `x` is the one of tests/models/models.py. No header is
   included: the prototypes below tell gcc that the math library has vector versions. */

#ifdef VECTOR_MATH
#define VECTOR __attribute__((simd("notinbranch"), const))
#else
#define VECTOR
#endif
VECTOR double log(double);
double exp(double);
double log1p(double);

#define R restrict
#define COUNTIES 1024
#define BLOCK 256
static const double HALF_LOG_2PI = 0.91893853320467274178;
static const double LOG_PI = 1.14472988584940017414;
static const double LOG_5 = 1.60943791243410037460;
static const double LOG_10 = 2.30258509299404568402;

/* x = t[8], mu, log tau. */
double eight_schools(const double *R x, const double *R y, const double *R sigma, double *R grad) {
    const double mu = x[8], u = x[9], tau = exp(u), q = tau / 5;
    double value = 0, sum_r = 0, sum_rt = 0;
#pragma omp simd reduction(+ : value, sum_r, sum_rt)
    for (int i = 0; i < 8; i++) {
        const double t = x[i], inv = 1 / sigma[i], z = (y[i] - mu - tau * t) * inv, r = z * inv;
        value -= 0.5 * (t * t + z * z) + log(sigma[i]);
        sum_r += r;
        sum_rt += r * t;
        grad[i] = tau * r - t;
    }
    grad[8] = sum_r - mu / 25;
    grad[9] = tau * sum_rt - 2 * q * q / (1 + q * q) + 1;
    return value - 17 * HALF_LOG_2PI - 0.5 * (mu / 5) * (mu / 5) - LOG_5 - LOG_PI - LOG_5 -
           log1p(q * q) + u;
}

/* x = log sy, log sa, log sb, ar[J], br[J], ma, mb. At most 1024 counties. */
double radon(long n, long J, const double *R x, const double *R y, const double *R floor_,
             const long *R county, double *R grad) {
    const double sy = exp(x[0]), sa = exp(x[1]), sb = exp(x[2]), inv = 1 / sy;
    const double *R ar = x + 3, *R br = x + 3 + J;
    const double ma = x[3 + 2 * J], mb = x[4 + 2 * J];
    double a[COUNTIES], b[COUNTIES], ga[COUNTIES], gb[COUNTIES], ga2[COUNTIES], gb2[COUNTIES];
    double r[BLOCK], rf[BLOCK];
    double squares = 0, prior = 0;

#pragma omp simd reduction(+ : prior)
    for (long j = 0; j < J; j++) {
        a[j] = ma + sa * ar[j];
        b[j] = mb + sb * br[j];
        prior += ar[j] * ar[j] + br[j] * br[j];
        ga[j] = gb[j] = ga2[j] = gb2[j] = 0;
    }
    for (long start = 0; start < n; start += BLOCK) {
        const long m = n - start < BLOCK ? n - start : BLOCK;
        const double *R yb = y + start, *R fb = floor_ + start;
        const long *R cb = county + start;
#pragma omp simd reduction(+ : squares) simdlen(4)
        for (long i = 0; i < m; i++) {
            const double z = (yb[i] - (a[cb[i]] + fb[i] * b[cb[i]])) * inv;
            squares += z * z;
            r[i] = z * inv;
            rf[i] = z * inv * fb[i];
        }
        long i = 0;
        for (; i + 1 < m; i += 2) { /* two private copies: neighbours often hit the same county */
            ga[cb[i]] += r[i];
            gb[cb[i]] += rf[i];
            ga2[cb[i + 1]] += r[i + 1];
            gb2[cb[i + 1]] += rf[i + 1];
        }
        if (i < m) {
            ga[cb[i]] += r[i];
            gb[cb[i]] += rf[i];
        }
    }
    double sum_a = 0, sum_b = 0, dot_a = 0, dot_b = 0;
#pragma omp simd reduction(+ : sum_a, sum_b, dot_a, dot_b)
    for (long j = 0; j < J; j++) {
        const double da = ga[j] + ga2[j], db = gb[j] + gb2[j];
        sum_a += da;
        sum_b += db;
        dot_a += da * ar[j];
        dot_b += db * br[j];
        grad[3 + j] = sa * da - ar[j];
        grad[3 + J + j] = sb * db - br[j];
    }
    grad[0] = squares - n - sy * sy + 1;
    grad[1] = sa * dot_a - sa * sa + 1;
    grad[2] = sb * dot_b - sb * sb + 1;
    grad[3 + 2 * J] = sum_a - ma / 100;
    grad[4 + 2 * J] = sum_b - mb / 100;
    return -0.5 * (squares + prior + sy * sy + sa * sa + sb * sb + (ma * ma + mb * mb) / 100) -
           (n + 2 * J + 5) * HALF_LOG_2PI - 2 * LOG_10 - n * x[0] + x[0] + x[1] + x[2];
}

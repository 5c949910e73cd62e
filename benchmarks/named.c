/* What named operations come down to, written by hand. */

#include <math.h>

/* The mean of each window of w elements that ends at a position; NaN where it is not full. */
void rolling_mean(long n, long w, const double *restrict x, double *restrict out) {
    for (long i = 0; i < w - 1 && i < n; i++) out[i] = NAN;
    for (long i = w - 1; i < n; i++) {
        double s = 0;
        for (long k = 0; k < w; k++) s += x[i - w + 1 + k];
        out[i] = s / (double)w;
    }
}

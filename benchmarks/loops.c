/* Loops written by hand, value and gradient: what benchmarks/loops.py compares with.
   Each function returns the value; with a gradient buffer it fills that too. */
#include <math.h>
#include <string.h>

#ifdef VECTOR_MATH
__attribute__((simd("notinbranch"), const)) double log(double);
#endif

double garch(long n, const double *x, const double *y, double *grad, double *work) {
  double mu = x[0], a0 = x[1], a1 = x[2], b1 = x[3], s = 1.0, total = 0;
  double *s2 = work;
  for (long t = 0; t < n; t++) {
    s2[t] = s;
    double e = y[t] - mu;
    s = a0 + a1 * e * e + b1 * s;
  }
#pragma omp simd reduction(+ : total)
  for (long t = 0; t < n; t++) {
    double e = y[t] - mu;
    total += log(s2[t]) + e * e / s2[t];
  }
  if (grad) {
    double g = 0, gmu = 0, ga0 = 0, ga1 = 0, gb1 = 0; /* g: cotangent of the variance after t */
    for (long t = n - 1; t >= 0; t--) {
      double e = y[t] - mu, i = 1 / s2[t];
      ga0 += g;
      ga1 += g * e * e;
      gb1 += g * s2[t];
      gmu -= g * a1 * 2 * e - e * i;
      g = g * b1 - 0.5 * (i - e * e * i * i);
    }
    grad[0] = gmu, grad[1] = ga0, grad[2] = ga1, grad[3] = gb1;
  }
  return -0.5 * total;
}

enum { K = 4 };

double hmm(long n, const double *x, const double *y, double *grad, double *work) {
  const double *start = x, *trans = x + K, *mu = x + K + K * K;
  double a[K], *weights = work;
  for (int k = 0; k < K; k++) a[k] = start[k];
  for (long t = 0; t < n; t++) {
    double new[K];
    for (int k = 0; k < K; k++) {
      double v[K], m = -INFINITY, sum = 0;
      for (int j = 0; j < K; j++) {
        v[j] = a[j] + trans[j * K + k];
        if (v[j] > m) m = v[j];
      }
      for (int j = 0; j < K; j++) sum += v[j] = exp(v[j] - m);
      if (grad)
        for (int j = 0; j < K; j++) weights[(t * K + k) * K + j] = v[j] / sum;
      new[k] = m + log(sum) - 0.5 * (y[t] - mu[k]) * (y[t] - mu[k]);
    }
    for (int k = 0; k < K; k++) a[k] = new[k];
  }
  double m = -INFINITY, sum = 0, g[K];
  for (int k = 0; k < K; k++)
    if (a[k] > m) m = a[k];
  for (int k = 0; k < K; k++) sum += g[k] = exp(a[k] - m);
  if (grad) {
    memset(grad, 0, (2 * K + K * K) * sizeof(double));
    for (int k = 0; k < K; k++) g[k] /= sum;
    for (long t = n - 1; t >= 0; t--) {
      double old[K] = {0};
      for (int k = 0; k < K; k++) {
        grad[K + K * K + k] += g[k] * (y[t] - mu[k]);
        for (int j = 0; j < K; j++) {
          double w = g[k] * weights[(t * K + k) * K + j];
          old[j] += w;
          grad[K + j * K + k] += w;
        }
      }
      for (int k = 0; k < K; k++) g[k] = old[k];
    }
    for (int k = 0; k < K; k++) grad[k] = g[k];
  }
  return m + log(sum);
}

double taps(long n, const double *x, const double *y, double *grad, double *work) {
  double c = x[0], p1 = x[1], p2 = x[2], p3 = x[3], total = 0;
  double *h = work;
  h[0] = h[1] = h[2] = 0.1;
  for (long t = 0; t < n; t++) {
    h[t + 3] = c + p1 * h[t + 2] + p2 * h[t + 1] + p3 * h[t] + y[t];
    total += h[t + 3] * h[t + 3];
  }
  if (grad) {
    double g1 = 0, g2 = 0, g3 = 0, gc = 0, gp1 = 0, gp2 = 0, gp3 = 0;
    for (long t = n - 1; t >= 0; t--) {
      double g = g1 + 2 * h[t + 3];
      gc += g, gp1 += g * h[t + 2], gp2 += g * h[t + 1], gp3 += g * h[t];
      g1 = g2 + g * p1, g2 = g3 + g * p2, g3 = g * p3;
    }
    grad[0] = gc, grad[1] = gp1, grad[2] = gp2, grad[3] = gp3;
  }
  return total;
}

#define H 0.01

double rk(long n, const double *x, const double *y, double *grad, double *work) {
  double al = x[0], be = x[1], ga = x[2], de = x[3], u = x[4], v = x[5];
  for (long t = 0; t < n; t++) {
    work[2 * t] = u, work[2 * t + 1] = v;
    double u1 = (al - be * v) * u, v1 = (de * u - ga) * v;
    double p = u + H / 2 * u1, q = v + H / 2 * v1;
    double u2 = (al - be * q) * p, v2 = (de * p - ga) * q;
    p = u + H / 2 * u2, q = v + H / 2 * v2;
    double u3 = (al - be * q) * p, v3 = (de * p - ga) * q;
    p = u + H * u3, q = v + H * v3;
    double u4 = (al - be * q) * p, v4 = (de * p - ga) * q;
    u += H / 6 * (u1 + 2 * u2 + 2 * u3 + u4);
    v += H / 6 * (v1 + 2 * v2 + 2 * v3 + v4);
  }
  if (grad) {
    double gu = 1, gv = 1, gal = 0, gbe = 0, gga = 0, gde = 0;
    for (long t = n - 1; t >= 0; t--) {
      double s = work[2 * t], r = work[2 * t + 1];
      double p[4], q[4], ku[4], kv[4];
      const double step[4] = {0, H / 2, H / 2, H}, part[4] = {H / 6, H / 3, H / 3, H / 6};
      for (int i = 0; i < 4; i++) {
        p[i] = i ? s + step[i] * ku[i - 1] : s;
        q[i] = i ? r + step[i] * kv[i - 1] : r;
        ku[i] = (al - be * q[i]) * p[i];
        kv[i] = (de * p[i] - ga) * q[i];
      }
      double bu = gu, bv = gv, nu = gu, nv = gv, pu = 0, pv = 0;
      for (int i = 3; i >= 0; i--) {
        double cu = part[i] * bu + pu, cv = part[i] * bv + pv;
        gal += cu * p[i], gbe -= cu * p[i] * q[i], gde += cv * p[i] * q[i], gga -= cv * q[i];
        double gp = cu * (al - be * q[i]) + cv * de * q[i];
        double gq = cv * (de * p[i] - ga) - cu * be * p[i];
        nu += gp, nv += gq;
        pu = step[i] * gp, pv = step[i] * gq;
      }
      gu = nu, gv = nv;
    }
    grad[0] = gal, grad[1] = gbe, grad[2] = gga, grad[3] = gde, grad[4] = gu, grad[5] = gv;
  }
  return u + v;
}

#define STEP 0.002

double leapfrog(long n, const double *x, const double *y, double *grad, double *work) {
  double k = x[0], q = x[1], p = x[2];
  long t = 0;
  while (t < n) {
    work[3 * t] = q;
    p -= STEP / 2 * k * sin(q);
    work[3 * t + 1] = p;
    q += STEP * p;
    work[3 * t + 2] = q;
    p -= STEP / 2 * k * sin(q);
    t++;
    if (q < 0) break;
  }
  if (grad) {
    double gq = 1, gp = 1, gk = 0;
    while (t-- > 0) {
      double q1 = work[3 * t + 2], q0 = work[3 * t];
      gk -= gp * STEP / 2 * sin(q1);
      gq -= gp * STEP / 2 * k * cos(q1);
      gp += gq * STEP;
      gk -= gp * STEP / 2 * sin(q0);
      gq -= gp * STEP / 2 * k * cos(q0);
    }
    grad[0] = gk, grad[1] = gq, grad[2] = gp;
  }
  return q + p;
}

double history(long n, const double *x, const double *w, double *grad, double *work) {
  double r = x[0], *h = work, *g = work + n, total = 0;
  h[0] = x[1];
  for (long t = 1; t < n; t++) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long j = 0; j < t; j++) sum += h[j] * w[n - t + j];
    h[t] = r * sum;
  }
  for (long t = 0; t < n; t++) total += h[t] * h[t];
  if (grad) {
    double gr = 0;
    for (long t = 0; t < n; t++) g[t] = 2 * h[t];
    for (long t = n - 1; t > 0; t--) {
      double sum = 0, c = r * g[t], one = g[t];
#pragma omp simd reduction(+ : sum)
      for (long j = 0; j < t; j++) {
        sum += h[j] * w[n - t + j];
        g[j] += c * w[n - t + j];
      }
      gr += one * sum;
    }
    grad[0] = gr, grad[1] = g[0];
  }
  return total;
}

"""Expressions of array-agnostic libraries; run as a program, it evaluates them and prints JSON."""

import importlib
import json
import os
import sys
import traceback

# What the names in expressions are: arrays of the library under test, made from these.
ARRAYS = {
    "x": "np.linspace(0.1, 2, 6)",
    "y": "np.linspace(0.1, 2, 6) ** 2",
    "p": "np.linspace(0.05, 0.9, 6)",
    "long": "np.linspace(0.1, 2, 30) ** 2",
    "M": "np.arange(12.0).reshape(3, 4) ** 2",
    "P": "np.arange(12.0).reshape(6, 2)",
    "S": "np.asarray([[4.0, 1, 0], [1, 3, 1], [0, 1, 2]])",
    "counts": "np.asarray([16.0, 18, 16, 14, 12, 12])",
    "zeros": "np.zeros(2)",
    "ones": "np.ones(2)",
    "pair": "np.asarray([2.0, 3.0])",
    "k": "np.asarray([0, 2, 1])",
    "X": "np.random.default_rng(0).normal(size=(40, 4))",
    "labels": "(np.random.default_rng(0).normal(size=(40, 4))[:, 0] > 0).astype(np.int64)",
    "target": "np.random.default_rng(0).normal(size=(40, 4)) @ np.asarray([1.0, 2, 3, 4])",
}

SCIPY = [
    *(f"special.{n}(x)" for n in ("logsumexp", "softmax", "log_softmax", "gammaln", "erf")),
    *(f"special.{n}(p)" for n in ("logit", "erfc", "i0", "ndtr", "ndtri", "log_ndtr", "entr")),
    "special.betainc(x, y + 1, p)", "special.gammainc(x, y)", "special.xlogy(x, y)",
    "special.rel_entr(x, y)", "special.stdtr(x, y)",
    *(f"stats.{n}(x)" for n in (
        "gmean", "hmean", "zscore", "skew", "kurtosis", "moment", "sem", "describe", "variation",
        "iqr", "kstat", "circmean", "circvar", "entropy", "jarque_bera", "tmean", "tvar", "mode",
        "rankdata", "differential_entropy",
    )),
    *(f"stats.{n}(long)" for n in ("normaltest", "skewtest", "kurtosistest")),
    "stats.pmean(x, 2)", "special.expit(x)", "special.i1e(p)",
    "stats.ttest_1samp(x, 0.5)", "stats.trim_mean(x, 0.1)",
    "stats.boxcox_llf(1.0, x)", "stats.pearsonr(x, y)", "stats.linregress(x, y)",
    "stats.ttest_ind(x, y)", "stats.ttest_rel(x, y)", "stats.chisquare(counts)",
    "stats.power_divergence(counts, lambda_='log-likelihood')", "stats.combine_pvalues(p)",
    "stats.false_discovery_control(p)", "stats.bartlett(x, y)", "stats.levene(x, y)",
    "stats.f_oneway(x, y)", "stats.kruskal(x, y)", "stats.directional_stats(M + 1).mean_direction",
    "stats.quantile(x, p)", "stats.spearmanr(x, y)", "stats.bws_test(x, y)",
    *(f"fft.{n}(x)" for n in ("fft", "ifft", "rfft", "dct", "dst", "fftshift")),
    "fft.fht(x, 0.1, 0.5)",
    *(f"signal.{n}" for n in (
        "fftconvolve(x, y)", "convolve(x, y)", "lfilter(pair, pair, x)", "detrend(x)",
        "hilbert(x)", "resample(x, 4)",
    )),
    "linalg.det(S)", "linalg.inv(S)", "linalg.solve(S, S[0, :])", "linalg.svdvals(S)",
    "cluster.vq.whiten(M)", "cluster.vq.vq(P, P[:2, :] + 1)", "cluster.hierarchy.linkage(P)",
    "integrate.trapezoid(x)", "integrate.simpson(x)", "integrate.cumulative_trapezoid(x)",
    "integrate.cumulative_simpson(x)", "integrate.tanhsinh(lambda z: z**2, zeros, pair).integral",
    "integrate.cubature(lambda z: z[:, 0] ** 2, zeros[:1], ones[:1]).estimate",
    "optimize.elementwise.find_root(lambda z, c: z**2 - c, (zeros, ones * 3), args=(pair,)).x",
    "optimize.elementwise.find_minimum(lambda z, c: (z - c) ** 2, (-5 * ones, zeros, 9 * ones),"
    " args=(pair,)).x",
    "optimize.rosen(x)", "optimize.rosen_der(x)", "optimize.rosen_hess(x)",
    "differentiate.derivative(xp.exp, x).df", "differentiate.jacobian(lambda z: z**2, x).df",
    "differentiate.hessian(lambda z: z[0] ** 2 * z[1], x[:2]).ddf",
    "ndimage.gaussian_filter(M, 1.0)", "ndimage.median_filter(M, 3)",
    "spatial.transform.Rotation.from_euler('xyz', x[:3]).as_matrix()",
    "interpolate.PchipInterpolator(x, y)(x)", "interpolate.make_interp_spline(x, y)(x)",
]  # fmt: skip

EXTRA = [f"xpx.{n}" for n in (
    "atleast_nd(x, ndim=2)", "cov(M)", "create_diagonal(x)", "isclose(x, y)", "kron(x, y)",
    "nunique(x)", "pad(x, 2)", "setdiff1d(x, x[:2])", "sinc(x)", "one_hot(k, 4)", "nan_to_num(x)",
    "at(x)[0].set(9.0)", "at(x)[x > 1].add(9.0)", "expand_dims(x, axis=(0, 1))",
    "apply_where(x > 1, x, lambda z: z + 1, lambda z: z - 1)",
    "lazy_apply(lambda a: np.asarray(a) * 2, x)",
)]  # fmt: skip

SKLEARN = [
    *(f"preprocessing.{n}().fit_transform(X)" for n in (
        "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer",
        "PolynomialFeatures",
    )),
    "preprocessing.KernelCenterer().fit_transform(X[:4, :])",
    "preprocessing.LabelEncoder().fit_transform(labels)",
    "xp.abs(decomposition.PCA(n_components=2, svd_solver='full').fit_transform(X))",
    "linear_model.Ridge(solver='svd').fit(X, target).predict(X)",
    "linear_model.RidgeCV().fit(X, target).predict(X)",
    "linear_model.RidgeClassifier(solver='svd').fit(X, labels).predict(X)",
    "linear_model.LogisticRegression(solver='lbfgs').fit(X, labels).predict(X)",
    "discriminant_analysis.LinearDiscriminantAnalysis().fit(X, labels).predict(X)",
    "naive_bayes.GaussianNB().fit(X, labels).predict(X)",
    "kernel_approximation.Nystroem(n_components=3, random_state=0).fit_transform(X)",
    "model_selection.train_test_split(X, random_state=0)[0]",
    *(f"metrics.{n}(target, target + 0.1)" for n in (
        "r2_score", "mean_squared_error", "mean_absolute_error",
    )),
    *(f"metrics.{n}(labels, labels)" for n in ("accuracy_score", "confusion_matrix", "f1_score")),
    "metrics.log_loss(labels, X[:, 0] * 0 + 0.3)",
    *(f"metrics.pairwise.{n}(X)" for n in (
        "euclidean_distances", "rbf_kernel", "cosine_similarity",
    )),
]  # fmt: skip

NUMPY = [f"np.{n}" for n in (
    "sum(x, 0)", "mean(x)", "std(x, ddof=1)", "diff(x, 1)", "clip(x, 1, 2)", "stack([x, y], 1)",
    "where(x > 1, x, 0)", "cumsum(x, 0)", "tensordot(x, y, 1)", "repeat(x, 2)", "roll(x, 1)",
    "sort(x, 0)", "linalg.inv(S)", "fft.fft(x)", "exp(x)", "add(x, y)", "einsum('i,i', x, y)",
)]  # fmt: skip

COMPUTED = [f"np.{n}" for n in (  # lazyarr has no word for these: NumPy computes them
    "einsum('i,j->ij', x, y, optimize=True)",
    "atleast_1d(x)", "column_stack([x, y])", "sum(x, where=np.asarray(x) > 1)", "add.reduce(x)",
    "frexp(x)", "lexsort((x, y))", "concatenate([x, y], 0)", "linalg.norm(x, 1)", "modf(x)",
)]  # fmt: skip

# NumPy arrays come out also of array-agnostic functions here: they convert what they are given.
CONVERTS = {"linalg.inv(S)", "linalg.solve(S, S[0, :])", "linalg.svdvals(S)"}

GROUPS = {"scipy": SCIPY, "array_api_extra": EXTRA, "sklearn": SKLEARN, "numpy": NUMPY}
GROUPS["computed"] = COMPUTED


def _names(group: str, lazy: bool) -> dict:
    import numpy as np

    import lazyarr

    names: dict = {"np": np, "xp": lazyarr if lazy else np}
    if group == "array_api_extra":
        names["xpx"] = importlib.import_module("array_api_extra")
    if group in ("scipy", "sklearn"):
        for text in GROUPS[group]:
            for word in text.replace("(", " ").split():
                module = word.split(".")[0]
                if module.isidentifier() and "." in word and module not in ("xp", "np"):
                    names[module] = importlib.import_module(f"{group}.{module}")
    if group == "scipy":
        for name in (
            "optimize.elementwise",
            "cluster.vq",
            "cluster.hierarchy",
            "spatial.transform",
        ):
            importlib.import_module(f"scipy.{name}")
        importlib.import_module("scipy.spatial.transform")
    for name, text in ARRAYS.items():
        value = eval(text, {"np": np})
        names[name] = lazyarr.asarray(value) if lazy else value
    return names


def _flat(value: object) -> list:
    if hasattr(value, "statistic") and hasattr(value, "pvalue"):
        return _flat([value.statistic, value.pvalue])
    if isinstance(value, tuple | list):
        return [x for v in value for x in _flat(v)]
    return [] if value is None else [value]


def _evaluate(text: str, lazy: dict, eager: dict) -> dict:
    import numpy as np

    want = _flat(eval(text, eager))
    try:
        got = _flat(eval(text, lazy))
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-7, atol=1e-9)
    except Exception:
        return {"error": traceback.format_exc(limit=-4)}
    kept = [hasattr(g, "_v") for g, w in zip(got, want, strict=True) if isinstance(w, np.ndarray)]
    return {"lazy": all(kept)}


def main(group: str) -> None:
    """Evaluate the expressions of a group and print what came out, as JSON."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    if group == "sklearn":
        importlib.import_module("sklearn").set_config(array_api_dispatch=True)
    lazy, eager = _names(group, True), _names(group, False)
    print(json.dumps({text: _evaluate(text, lazy, eager) for text in GROUPS[group]}))


if __name__ == "__main__":
    main(sys.argv[1])

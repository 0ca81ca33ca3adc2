"""Prints the numbers that crates/statistics/tests/reference.rs compares with (scipy 1.17, numpy 2).

    python3 scripts/statistics_reference.py

Each line is the expression and its value; the same expressions stand beside the numbers in the test.
"""

from itertools import product

import numpy as np
from scipy import stats
from scipy.stats import binomtest, bootstrap, permutation_test, trim_mean, ttest_rel

# Test accuracies of two arms over 8 seeds (quarters of a per cent), and a list with ties and an outlier.
arm = np.array([0.9925, 0.9875, 0.9950, 0.9800, 0.9900, 0.9775, 0.9925, 0.9850])
base = np.array([0.9800, 0.9850, 0.9775, 0.9825, 0.9700, 0.9750, 0.9800, 0.9825])
d = arm - base
x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 35.0])
small = np.array([0.5, -0.25, 1.0, 2.0, 0.75])  # few enough for all 5^5 resamples; sums of quarters are exact


def mean_of_signs(values, axis):
    return np.mean(values, axis=axis)


def sign_flip(values):
    test = permutation_test((values,), mean_of_signs, permutation_type="samples", n_resamples=np.inf)
    return test.pvalue


def bca(values, means, level):
    """The pieces of scipy.stats._resampling._bca_interval, for the mean."""
    n, mean, norm = len(values), np.mean(values), stats.norm
    z0 = norm.ppf((np.sum(means < mean) + np.sum(means <= mean)) / (2 * len(means)))
    jackknife = np.array([np.mean(np.delete(values, i)) for i in range(n)])
    u = np.mean(jackknife) - jackknife
    a = np.sum(u**3) / (6 * np.sum(u**2) ** 1.5)
    z = norm.ppf([(1 - level) / 2, (1 + level) / 2])
    return z0, a, *np.quantile(means, norm.cdf(z0 + (z0 + z) / (1 - a * (z0 + z))))


def holm(p):
    """By hand: the i-th smallest of m times m - i, never falling, at most 1."""
    order = np.argsort(p)
    steps = np.maximum.accumulate((len(p) - np.arange(len(p))) * np.array(p)[order])
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(1, steps)
    return adjusted


all_means = np.array([np.mean(draw) for draw in product(small, repeat=5)])

EXPRESSIONS = """
ttest_rel(arm, base).statistic
ttest_rel(arm, base).pvalue
np.mean(d), np.std(d, ddof=1), stats.sem(d)
ttest_rel(arm, base).confidence_interval(0.95)
ttest_rel(arm, base).confidence_interval(0.99)
stats.t.ppf(0.975, [1, 2, 5, 7, 9, 29, 999])
stats.t.ppf(1 - 1e-8, 1)
2 * stats.t.sf([0.5, 2, 10, 50], 9)
sign_flip(d)
sign_flip(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
sign_flip(np.array([1.0, 1.0, -1.0, 1.0, 0.0, 1.0, 1.0, 1.0, -1.0, 1.0]))
sign_flip(x[:9] - 3.7)
binomtest(7, 10).proportion_ci(0.95, method='wilson')
binomtest(0, 10).proportion_ci(0.95, method='wilson')
binomtest(10, 10).proportion_ci(0.95, method='wilson')
binomtest(1, 3).proportion_ci(0.99, method='wilson')
bca(small, all_means, 0.95)
bca(small, all_means, 0.80)
bootstrap((d,), np.mean, n_resamples=1_000_000, batch=100_000, method='BCa', rng=np.random.default_rng(0)).confidence_interval
holm([0.01, 0.04, 0.03, 0.005])
holm([0.02, 0.02, 0.9])
np.mean(x), np.std(x, ddof=1), np.median(x), stats.median_abs_deviation(x)
np.quantile(x, [0, 0.1, 0.25, 0.5, 0.75, 0.99, 1])
trim_mean(x, 0.25), trim_mean(x[:7], 0.25), trim_mean(x[:3], 0.25)
np.average([0.7, 0.8, 0.9], weights=[256, 256, 10])
stats.mannwhitneyu(arm, base).statistic / 64
"""

for expression in EXPRESSIONS.strip().splitlines():
    value = eval(expression)  # The text printed is the text evaluated.
    numbers = " ".join(repr(float(number)) for number in np.atleast_1d(np.asarray(value)))
    print(f"{expression}\n    {numbers}")

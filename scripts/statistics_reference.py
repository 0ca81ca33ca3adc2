"""Prints the numbers that crates/statistics/tests/reference.rs and answer_reference.rs compare with (scipy 1.17,
statsmodels 0.15, numpy 2).

    python3 scripts/statistics_reference.py

Each line is the expression and its value; the same expressions stand beside the numbers in the test.
"""

from itertools import product

import numpy as np
from scipy import stats
from scipy.integrate import quad
from scipy.stats import binomtest, bootstrap, permutation_test, trim_mean, ttest_rel
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired

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


# Five arms of a sweep over 8 pairs.
rows = np.array([[0.59, 0.61, 0.58, 0.60, 0.62, 0.57, 0.60, 0.59], [0.77, 0.75, 0.79, 0.76, 0.78, 0.77, 0.74, 0.80],
                 arm, base, base + 0.001 * np.arange(8)])


def upper(i, j):
    """U[i][j] of K arms: upper one-sided limit of mean(y[j] - y[i]) at alpha / (K - 1)."""
    return ttest_rel(rows[j], rows[i]).confidence_interval(1 - 2 * 0.05 / 4).high


def lower(i, j):
    """L[i][j]: the lower limit at alpha / (K (K - 1))."""
    return ttest_rel(rows[j], rows[i]).confidence_interval(1 - 2 * 0.05 / 20).low


def power_better(n, difference, sd, margin, alpha):
    """One-sided paired t test of a difference beyond the margin, at alpha / 2."""
    return TTestPower().power((difference - margin) / sd, n, alpha / 2, alternative="larger")


def power_equivalent(n, difference, sd, margin, alpha):
    """Two one-sided tests at alpha: the mean of their joint power over the sample standard deviation s = r sd."""
    t, error = stats.t.ppf(1 - alpha, n - 1), sd / np.sqrt(n)
    within = lambda r: stats.norm.cdf((margin - difference) / error - t * r) - stats.norm.cdf(
        (-margin - difference) / error + t * r)
    density = lambda r: stats.chi2.pdf((n - 1) * r * r, n - 1) * 2 * (n - 1) * r
    return quad(lambda r: max(0, within(r)) * density(r), 0, 6, limit=500, points=[0.5, 1, 2], epsabs=1e-12)[0]


def welch(sd, n, sx, N):
    """Standard error and degrees of freedom of two independent parts (Welch and Satterthwaite)."""
    a, b = sd**2 / n, sx**2 / N
    return np.sqrt(a + b), (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (N - 1))


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
np.mean(x), np.std(x, ddof=1), np.median(x), stats.median_abs_deviation(x)
np.quantile(x, [0, 0.1, 0.25, 0.5, 0.75, 0.99, 1])
trim_mean(x, 0.25), trim_mean(x[:7], 0.25), trim_mean(x[:3], 0.25)
np.average([0.7, 0.8, 0.9], weights=[256, 256, 10])
stats.mannwhitneyu(arm, base).statistic / 64
stats.pearsonr(arm, base).statistic
ttost_paired(arm, base, -0.02, 0.02)[0]
ttost_paired(arm, base, -0.0125, 0.0125)[0]
ttest_rel(arm, base).confidence_interval(0.90)
stats.beta.ppf(0.95, [1, 2, 3, 11], [10, 9, 18, 1190])
binomtest(1, 15, alternative='less').proportion_ci(1 - 0.0125, method='exact').high
mcnemar([[0, 4], [0, 2]], exact=True).pvalue, mcnemar([[3, 9], [1, 2]], exact=True).pvalue, mcnemar([[5, 0], [0, 1]], exact=True).pvalue, mcnemar([[0, 2], [2, 0]], exact=True).pvalue
[upper(0, j) for j in (1, 2, 3, 4)]
[lower(0, j) for j in (1, 2, 3, 4)]
[upper(3, j) for j in (0, 1, 2, 4)]
welch(0.00823, 8, 0.3, 500)
np.mean(d) + welch(np.std(d, ddof=1), 8, 0.3, 500)[0] * stats.t.ppf(0.975, welch(np.std(d, ddof=1), 8, 0.3, 500)[1])
power_better(10, 0.05, 0.02, 0.02, 0.05), power_better(6, 0.03, 0.02, 0.02, 0.0125), power_better(40, 0.03, 0.02, 0.02, 0.05)
power_equivalent(13, 0.0, 0.02, 0.02, 0.05), power_equivalent(12, 0.0, 0.02, 0.02, 0.05), power_equivalent(20, 0.01, 0.02, 0.02, 0.05), power_equivalent(6, 0.0, 0.02, 0.02, 0.05)
[next(n for n in range(2, 200) if power_equivalent(n, 0, s, 1, 0.05) >= 0.9) for s in (0.5, 1, 1.5, 2, 3)]
np.sqrt(9 / stats.chi2.ppf(0.2, 9))
2 * stats.t.sf(1.7, 5.5), stats.t.ppf(0.975, 5.5)
"""

for expression in EXPRESSIONS.strip().splitlines():
    value = eval(expression)  # The text printed is the text evaluated.
    numbers = " ".join(repr(float(number)) for number in np.atleast_1d(np.asarray(value)))
    print(f"{expression}\n    {numbers}")

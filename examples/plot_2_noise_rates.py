"""
Noise rates: heuristic or trusted labels
========================================

Noise rates are not identifiable from rows and labels alone: overlapping classes and noisy labels
look the same. Trusted labels of a few rows resolve this. How many are needed?
"""

# %%
# The heuristic estimate
# ----------------------
# Digits 0 to 4 against 5 to 9, with noise rates of 10% and 30%. Without other information,
# ``Automatic`` uses a heuristic estimate from high-confidence rows, and warns.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unflip import NoiseModel
from unflip.estimation import AssumedNoiseWarning, Automatic, TrustedSubset
from unflip.plotting.style import COLOURS, FAINT, LOOK

plt.rcParams.update(LOOK)

pixels, digit = load_digits(return_X_y=True)
X = pixels / 16
y = (digit >= 5).astype(int)
labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
realised = np.mean(labels[y == 1] == 0)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", AssumedNoiseWarning)  # expected here
    guess = Automatic().fit(X, labels)
print(
    f"estimate from {guess.source_}: eps_pos {guess.noise_.eps_pos:.2f} ± "
    f"{guess.noise_std_[1, 0]:.2f}"
)

# %%
# Trusted labels
# --------------
# Now more and more rows are checked, in the order that ``suggest`` proposes. Bars are 95%
# confidence intervals.

ask = TrustedSubset().fit(X, labels).suggest(400, random_state=0)
counts = [25, 50, 100, 200, 400]
estimates = []
lows = []
highs = []
for m in counts:
    y_trusted = np.full(len(y), np.nan)
    y_trusted[ask[:m]] = y[ask[:m]]  # in practice, a person checks these rows
    estimator = TrustedSubset(y_trusted).fit(X, labels)
    low, high = estimator.interval(0.95)
    estimates.append(estimator.noise_.eps_pos)
    lows.append(low[1, 0])
    highs.append(high[1, 0])

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
reach = [np.subtract(estimates, lows), np.subtract(highs, estimates)]
positions = np.arange(1, len(counts) + 1)
ax.errorbar(
    positions,
    estimates,
    reach,
    fmt="o",
    capsize=3,
    color=COLOURS["optimized"],
    label="trusted labels",
)
spread = 2 * guess.noise_std_[1, 0]
ax.errorbar(
    [0],
    [guess.noise_.eps_pos],
    [spread],
    fmt="s",
    capsize=3,
    color=COLOURS["naive"],
    label="heuristic",
)
ax.axhline(realised, color=FAINT, ls="--", label=f"realised noise rate: {realised:.2f}")
ax.set_xticks([0, *positions], ["none", *map(str, counts)])
ax.set(xlabel="number of trusted labels", ylabel="estimate of ε₊", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The heuristic estimate rests on an assumption. Its error bar is wide because rows and labels do
# not contradict any rate inside it. A classifier depends less on the noise rates, and more on the
# class priors, than one might expect: see :doc:`/noise_rates`.

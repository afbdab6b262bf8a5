"""
Noise rates: trusted rows or a guess
====================================

Rows and labels alone do not tell how many labels are wrong: classes may overlap, or labels may be flipped, and
both look the same. True labels of a few rows settle it. How many does it take?
"""

# %%
# The guess
# ---------
# Digits 0 to 4 against 5 to 9, with 30% and 10% of the labels flipped. With nothing else to go by,
# ``Automatic`` makes a guess from the surest rows, and says so.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unflip import NoiseModel
from unflip.estimation import AssumedNoiseWarning, Automatic, TrustedSubset
from unflip.report.style import COLOURS, FAINT, LOOK

plt.rcParams.update(LOOK)

pixels, digit = load_digits(return_X_y=True)
X, y = pixels / 16, (digit >= 5).astype(int)
labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
flipped = np.mean(labels[y == 1] == 0)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", AssumedNoiseWarning)  # we know that it is a guess
    guess = Automatic().fit(X, labels)
print(f"a guess from {guess.source_}: eps_pos {guess.noise_.eps_pos:.2f} ± {guess.noise_std_[1, 0]:.2f}")

# %%
# Trusted rows
# ------------
# Now more and more rows are checked, picked as ``suggest`` proposes. Each interval holds the rate with 95%
# probability.

ask = TrustedSubset().fit(X, labels).suggest(400, random_state=0)
counts = [25, 50, 100, 200, 400]
estimates, lows, highs = [], [], []
for m in counts:
    y_trusted = np.full(len(y), np.nan)
    y_trusted[ask[:m]] = y[ask[:m]]  # here a person would look at the rows
    estimator = TrustedSubset(y_trusted).fit(X, labels)
    low, high = estimator.interval(0.95)
    estimates.append(estimator.noise_.eps_pos)
    lows.append(low[1, 0])
    highs.append(high[1, 0])

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
reach = [np.subtract(estimates, lows), np.subtract(highs, estimates)]
positions = np.arange(1, len(counts) + 1)
ax.errorbar(positions, estimates, reach, fmt="o", capsize=3, color=COLOURS["optimized"], label="trusted rows")
spread = 2 * guess.noise_std_[1, 0]
ax.errorbar([0], [guess.noise_.eps_pos], [spread], fmt="s", capsize=3, color=COLOURS["naive"], label="guess")
ax.axhline(flipped, color=FAINT, ls="--", label=f"flipped in fact: {flipped:.2f}")
ax.set_xticks([0, *positions], ["none", *map(str, counts)])
ax.set(xlabel="rows whose true label is known", ylabel="estimate of ε₊", ylim=(0, None))
ax.legend()
plt.show()

# %%
# The guess is an assumption, and its error bar is that wide for a reason: nothing in rows and labels contradicts
# rates anywhere in it. A classifier needs the rates less than one would think, and the class proportions more:
# :doc:`/noise_rates` has the figures.

"""
What targets do
===============

A fit to noisy labels need not regress on −1 and +1. This picture shows where other targets put the scores of
new rows, and why that matters only if the origin is known.
"""

# %%
# Scores at a known origin
# ------------------------
# Class 0 has 30% of the rows, and its labels are flipped at a rate of 30%; those of class 1 at 40%. The
# threshold is 0.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from unflip import LPClassifier, NoiseModel, targets
from unflip.datasets import make_mixture
from unflip.report.style import LOOK, NEGATIVE, POSITIVE

plt.rcParams.update(LOOK)

noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
X, y = make_mixture(1000, 500, mean_norm=2.0, priors=noise.priors, random_state=0)
X_new, y_new = make_mixture(4000, 500, mean_norm=2.0, priors=noise.priors, random_state=1)
observed = noise.flip(y, random_state=0)

values = {"naive": targets.naive(), "unbiased": targets.unbiased(noise), "optimized": targets.optimized(noise)}
for name, (t_neg, t_pos) in values.items():
    print(f"{name:9}  label 0 counts as {t_neg:+.2f}, label 1 as {t_pos:+.2f}")

# %%
# Both optimized targets are positive: with these rates even a label 0 is more likely a class 1 in truth. The
# fit then learns from where the rows *are*, and not only from how their labels differ.


def scores(name, fit_intercept):
    """Return scores of new rows by a fit with these targets."""
    clf = LPClassifier(noise, targets=name, readout="plain", reg=10.0, fit_intercept=fit_intercept)
    return clf.fit(X, observed).decision_function(X_new)


def draw(ax, name, fit_intercept):
    """Histogram of the scores of each true class, in units of their spread."""
    s = scores(name, fit_intercept)
    s = s / s.std()
    bins = np.linspace(s.min(), s.max(), 50)
    for label, colour in ((0, NEGATIVE), (1, POSITIVE)):
        ax.hist(s[y_new == label], bins, color=colour, alpha=0.6, label=f"truly class {label}")
    ax.axvline(0, color="black", ls=":", lw=1)
    ax.set_title(f"{name}: {np.mean((s > 0) == y_new):.1%} right")
    ax.set(xlabel="score", yticks=[])


figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, name in zip(axes, values, strict=True):
    draw(ax, name, fit_intercept=False)
axes[0].legend()
plt.show()

# %%
# With an intercept
# -----------------
# Now the fit does not know where the origin is. All targets give the same direction, so that the three
# histograms are the same picture, cut at three places. (For the optimized ones `fit` warns that 0 is no place
# to cut.)

warnings.simplefilter("ignore", UserWarning)
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, name in zip(axes, values, strict=True):
    draw(ax, name, fit_intercept=True)
axes[0].legend()
plt.show()

first, *others = (scores(name, fit_intercept=True) for name in values)
print([f"{np.corrcoef(first, other)[0, 1]:.6f}" for other in others])

# %%
# What is left to find is the threshold, and the default read-out finds it. Refined targets, the other default,
# turn the direction, too.

clf = LPClassifier(noise).fit(X, observed)
print(f"refined targets, gaussian read-out: {clf.score(X_new, y_new):.1%}")

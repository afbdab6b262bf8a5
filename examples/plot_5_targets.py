"""
The effect of targets
=====================

A fit to noisy labels need not use the targets −1 and +1. This example shows how other targets move
the scores of new rows, and why this matters only if the origin is known.
"""

# %%
# Scores with a known origin
# --------------------------
# Class 0 has 30% of the rows and a noise rate of 30%. Class 1 has a noise rate of 40%. The
# threshold is 0.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from unflip import LPClassifier, NoiseModel, targets
from unflip.datasets import make_mixture
from unflip.plotting.style import LOOK, NEGATIVE, POSITIVE

plt.rcParams.update(LOOK)

noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
X, y = make_mixture(1000, 500, mean_norm=2.0, priors=noise.priors, random_state=0)
X_new, y_new = make_mixture(4000, 500, mean_norm=2.0, priors=noise.priors, random_state=1)
observed = noise.flip(y, random_state=0)

values = {
    "naive": targets.naive(),
    "unbiased": targets.unbiased(noise),
    "optimized": targets.optimized(noise),
}
for name, (t_neg, t_pos) in values.items():
    print(f"{name:9}  target of label 0: {t_neg:+.2f}, of label 1: {t_pos:+.2f}")

# %%
# Both optimized targets are positive: with these noise rates even a row with label 0 is more likely
# of class 1. The fit then uses the *position* of the rows, and not only the difference between
# their labels.


def scores(name, fit_intercept):
    """Return the scores of new rows by a fit with these targets."""
    clf = LPClassifier(noise, targets=name, readout="plain", reg=10.0, fit_intercept=fit_intercept)
    return clf.fit(X, observed).decision_function(X_new)


def draw(ax, name, fit_intercept):
    """Draw histograms of the standardised scores by true class."""
    s = scores(name, fit_intercept)
    s = s / s.std()
    bins = np.linspace(s.min(), s.max(), 50)
    for label, colour in ((0, NEGATIVE), (1, POSITIVE)):
        ax.hist(s[y_new == label], bins, color=colour, alpha=0.6, label=f"true class {label}")
    ax.axvline(0, color="black", ls=":", lw=1)
    ax.set_title(f"{name}: accuracy {np.mean((s > 0) == y_new):.1%}")
    ax.set(xlabel="score", yticks=[])


figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, name in zip(axes, values, strict=True):
    draw(ax, name, fit_intercept=False)
axes[0].legend()
plt.show()

# %%
# Scores with an intercept
# ------------------------
# With an intercept the origin is unknown. All targets give the same direction, so the three
# histograms differ only in the position of the threshold. (For optimized targets `fit` warns that 0
# is not a useful threshold.)

warnings.simplefilter("ignore", UserWarning)
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, name in zip(axes, values, strict=True):
    draw(ax, name, fit_intercept=True)
axes[0].legend()
plt.show()

first, *others = (scores(name, fit_intercept=True) for name in values)
print([f"{np.corrcoef(first, other)[0, 1]:.6f}" for other in others])

# %%
# Only the threshold is left to choose. The default, ``readout="gaussian"``, chooses it from the
# noise rates. Refined targets, also the default, change the direction, too.

clf = LPClassifier(noise).fit(X, observed)
print(f"refined targets, Gaussian calibration: {clf.score(X_new, y_new):.1%}")

"""
Theory against simulation
=========================

How accurate will a linear classifier be on clean labels, if it is fitted to flipped ones? For Gaussian classes
`unflip.theory` says so from five numbers and no data: the aspect ratio p/n, the separation ‖μ‖ of the classes,
the penalty γ, the flip rates and the class proportions. Here its answer is set beside fits to simulated rows.

The origin is known to lie midway between the classes (``fit_intercept=False``), as in the paper. This is where
the choice of targets matters most.
"""

# %%
# What the theory says
# --------------------
# Three kinds of targets, along the share ε₊ of positive labels that are flipped; 30% of the negative ones are.

import matplotlib.pyplot as plt
import numpy as np

from unflip import LPClassifier, NoiseModel, theory
from unflip.datasets import make_mixture
from unflip.report.style import COLOURS, LOOK, MARKERS

plt.rcParams.update(LOOK)

n, p, mean_norm, reg, pi_neg = 400, 200, 2.0, 10.0, 0.3
variants = ("naive", "unbiased", "optimized")


def noise_of(eps_pos):
    """Flips of 30% of the negative labels, and of a share of the positive ones."""
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=0.3, pi_neg=pi_neg)


def predicted(eps_pos, targets):
    """Accuracy on clean labels, without any data."""
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=p / n, noise=noise_of(eps_pos))
    return float(theory.predict(mixture, targets=targets, reg=reg).accuracy)


# %%
# What fits do
# ------------
# The same, simulated: rows are drawn, labels flipped, a classifier fitted and scored on new rows with clean labels.
# Each point is the mean of twelve draws, with two standard errors.

rng = np.random.default_rng(0)
priors = [pi_neg, 1 - pi_neg]
X_new, y_new = make_mixture(4000, p, mean_norm=mean_norm, priors=priors, random_state=rng)


def simulated(eps_pos, targets):
    """Accuracy on clean labels of a fit to fresh rows."""
    noise = noise_of(eps_pos)
    X, y = make_mixture(n, p, mean_norm=mean_norm, priors=priors, random_state=rng)
    clf = LPClassifier(noise, targets=targets, readout="plain", reg=reg, fit_intercept=False)
    return clf.fit(X, noise.flip(y, random_state=rng)).score(X_new, y_new)


coarse, fine = np.array([0.0, 0.2, 0.4, 0.5]), np.linspace(0, 0.5, 51)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for targets in variants:
    points = np.array([[simulated(eps_pos, targets) for _ in range(12)] for eps_pos in coarse])
    error = 2 * points.std(axis=1, ddof=1) / np.sqrt(points.shape[1])
    colour = COLOURS[targets]
    ax.plot(fine, [predicted(eps_pos, targets) for eps_pos in fine], color=colour)
    ax.errorbar(coarse, points.mean(axis=1), error, fmt=MARKERS[targets], color=colour, capsize=2, label=targets)
ax.set(xlabel="ε₊, share of positive labels that are flipped", ylabel="accuracy on clean labels")
ax.set_title("lines: predicted without data; markers: simulated")
ax.legend()
plt.show()

# %%
# Where many labels are flipped, naive targets, which take every label at its word, lose most. The unbiased ones of
# the textbook correct the mean and pay with variance. The optimized ones, the posterior mean of the true label, are
# the best that two values can do: :doc:`/theory/isotropic` has the reason and the formulas.

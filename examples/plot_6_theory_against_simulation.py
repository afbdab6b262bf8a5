"""
Theory against simulation
=========================

How accurate is a linear classifier on clean labels, if it is trained on noisy ones? For Gaussian
classes `unflip.theory` predicts the accuracy without data. It needs the aspect ratio p/n, the
separation ‖μ‖ of the classes, the regularization strength γ, the noise rates and the class priors.
This example compares the prediction with fits to simulated rows.

As in the paper, the origin is the midpoint of the class means (``fit_intercept=False``). In this
setting the choice of targets matters most.
"""

# %%
# Predictions of the theory
# -------------------------
# Three kinds of targets, as a function of the noise rate ε₊ of positive labels. The noise rate of
# negative labels is 30%.

import matplotlib.pyplot as plt
import numpy as np

from unflip import LPClassifier, NoiseModel, theory
from unflip.datasets import make_mixture
from unflip.plotting.style import COLOURS, LOOK, MARKERS

plt.rcParams.update(LOOK)

n = 400
p = 200
mean_norm = 2.0
reg = 10.0
pi_neg = 0.3
variants = ("naive", "unbiased", "optimized")


def noise_of(eps_pos):
    """Return a noise model with a noise rate of 30% for negative labels."""
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=0.3, pi_neg=pi_neg)


def predicted(eps_pos, targets):
    """Return the predicted accuracy on clean labels."""
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=p / n, noise=noise_of(eps_pos))
    return float(theory.predict(mixture, targets=targets, reg=reg).accuracy)


# %%
# Simulations
# -----------
# Rows are drawn, label noise is added, and a classifier is fitted and scored on new rows with clean
# labels. Each point is the mean of twelve draws, with two standard errors.

rng = np.random.default_rng(0)
priors = [pi_neg, 1 - pi_neg]
X_new, y_new = make_mixture(4000, p, mean_norm=mean_norm, priors=priors, random_state=rng)


def simulated(eps_pos, targets):
    """Return the accuracy on clean labels of a fit to new rows."""
    noise = noise_of(eps_pos)
    X, y = make_mixture(n, p, mean_norm=mean_norm, priors=priors, random_state=rng)
    clf = LPClassifier(noise, targets=targets, readout="plain", reg=reg, fit_intercept=False)
    return clf.fit(X, noise.flip(y, random_state=rng)).score(X_new, y_new)


coarse = np.array([0.0, 0.2, 0.4, 0.5])
fine = np.linspace(0, 0.5, 51)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for targets in variants:
    points = np.array([[simulated(eps_pos, targets) for _ in range(12)] for eps_pos in coarse])
    error = 2 * points.std(axis=1, ddof=1) / np.sqrt(points.shape[1])
    colour = COLOURS[targets]
    ax.plot(fine, [predicted(eps_pos, targets) for eps_pos in fine], color=colour)
    ax.errorbar(
        coarse,
        points.mean(axis=1),
        error,
        fmt=MARKERS[targets],
        color=colour,
        capsize=2,
        label=targets,
    )
ax.set(xlabel="ε₊, noise rate of positive labels", ylabel="accuracy on clean labels")
ax.set_title("lines: theory; markers: simulation")
ax.legend()
plt.show()

# %%
# With much noise, naive targets, which ignore it, lose most. Unbiased targets correct the mean but
# increase the variance. Optimized targets, the posterior mean of the true label, are the best pair
# of values. :doc:`/theory/isotropic` has the formulas and the proof.

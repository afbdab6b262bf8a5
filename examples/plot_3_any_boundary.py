"""
Boundaries that are not linear
==============================

Two moons with noisy labels. A random forest repeats the label errors. `LPClassifier` with kernel
features and the same forest in `NoisyLabelClassifier` do not.
"""

# %%
# Noisy labels
# ------------
# 40% of the labels of one class and 20% of the other are wrong.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier

from unflip import LPClassifier, NoiseModel, NoisyLabelClassifier
from unflip.plotting.style import LOOK, NEGATIVE, POSITIVE

plt.rcParams.update(LOOK)

X, y = make_moons(800, noise=0.2, random_state=0)
X_new, y_new = make_moons(5000, noise=0.2, random_state=1)
noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2)
labels = noise.flip(y, random_state=0)

# %%
# Four classifiers
# ----------------
# All are fitted to the same noisy labels. The class proportions are known: they determine the
# threshold if the two classes have different noise rates.

forest = RandomForestClassifier(random_state=0)
priors = [0.5, 0.5]
models = {
    "linear": LPClassifier(priors=priors),
    "kernel": LPClassifier(priors=priors, features="auto"),
    "forest": forest,
    "forest in NoisyLabelClassifier": NoisyLabelClassifier(forest, priors=priors),
}
accuracies = {}
for name, model in models.items():
    accuracies[name] = model.fit(X, labels).score(X_new, y_new)
    print(f"{name}: {accuracies[name]:.1%}")

# %%
# Their boundaries
# ----------------
# Dots are samples, coloured by their noisy label. The background is the predicted class.

colours = [NEGATIVE, POSITIVE]
grid = np.stack(np.meshgrid(np.linspace(-1.8, 2.8, 300), np.linspace(-1.4, 1.9, 300)), axis=-1)
figure, axes = plt.subplots(2, 2, figsize=(8, 6), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes.ravel(), models.items(), strict=True):
    predicted = model.predict(grid.reshape(-1, 2)).reshape(300, 300)
    horizontal, vertical = np.moveaxis(grid, -1, 0)
    ax.contourf(horizontal, vertical, predicted, [-0.5, 0.5, 1.5], colors=colours, alpha=0.25)
    for label, colour in enumerate(colours):
        ax.plot(*X[labels == label].T, ".", color=colour, markersize=3)
    ax.set_title(f"{name}: {accuracies[name]:.1%}")
    ax.axis("off")
figure.suptitle("accuracy on clean labels after training on noisy ones")
plt.show()

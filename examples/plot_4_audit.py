"""
Finding wrong labels
====================

Handwritten digits, some with a wrong label. `unflip.audit` lists them, worst first, without a single label
known to be right, and says where it stops being sure.
"""

# %%
# Labels with mistakes in them
# ----------------------------
# The digits 3, 5, 8 and 9 that come with scikit-learn. 15% of the labels are replaced by one of the other
# three.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unflip import NoiseModel, audit
from unflip.report.style import COLOURS, FAINT, LOOK

plt.rcParams.update(LOOK)

pixels, digit = load_digits(return_X_y=True)
names = np.array([3, 5, 8, 9])
kept = np.isin(digit, names)
X, y = pixels[kept] / 16, digit[kept]

transition = np.full((4, 4), 0.05) + 0.8 * np.eye(4)
labels = names[NoiseModel(transition).flip(np.searchsorted(names, y), random_state=0)]
wrong = labels != y
print(f"{wrong.sum()} of {len(y)} labels are wrong")

# %%
# The audit
# ---------
# It gets rows and labels, and the flip rates. Where you do not know these, leave ``noise`` out: they are then
# estimated, with a warning where that takes a guess.

found = audit(X, labels, noise=transition)
print(found)

# %%
# The first suspects
# ------------------

figure, axes = plt.subplots(2, 8, figsize=(9, 3), layout="constrained")
for ax, suspect in zip(axes.ravel(), found.suspects, strict=False):
    ax.imshow(X[suspect.row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"“{suspect.observed}” → {suspect.proposed}")
    ax.axis("off")
figure.suptitle("the sixteen most suspect labels, and what they should be")
plt.show()

# %%
# How far to trust the list
# -------------------------
# Going down the list, the share of labels that are wrong indeed, beside the share that the audit promises. It
# proposes to act on the first ``n_suspects``, of which about one in ten should turn out right.

order = np.argsort(found.label_posterior[np.arange(len(y)), np.searchsorted(names, labels)])
promised = 1 - found.label_posterior[order, np.searchsorted(names, labels[order])]
checked = np.arange(1, len(y) + 1)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(checked, np.cumsum(wrong[order]) / checked, color=COLOURS["optimized"], label="wrong indeed")
ax.plot(checked, np.cumsum(promised) / checked, color=COLOURS["refined"], ls="--", label="promised")
ax.axvline(found.n_suspects, color=FAINT, lw=1)
ax.annotate("n_suspects", (found.n_suspects, 0.2), xytext=(5, 0), textcoords="offset points", color=FAINT)
ax.set(xlim=(1, 300), ylim=(0, 1.05), xlabel="suspects looked at, worst first", ylabel="share of them")
ax.legend(loc="lower right")
plt.show()

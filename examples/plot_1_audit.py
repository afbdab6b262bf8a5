"""
Finding wrong labels
====================

Some handwritten digits have a wrong label. `unflip.audit` lists them, most suspicious first,
without any trusted label, and proposes how many of them to correct.
"""

# %%
# Noisy labels
# ------------
# The digits 3, 5, 8 and 9 of scikit-learn. 15% of the labels are replaced by one of the others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from unflip import NoiseModel, audit
from unflip.plotting.style import COLOURS, FAINT, LOOK

plt.rcParams.update(LOOK)

pixels, digit = load_digits(return_X_y=True)
names = np.array([3, 5, 8, 9])
kept = np.isin(digit, names)
X = pixels[kept] / 16
y = digit[kept]

transition = np.full((4, 4), 0.05) + 0.8 * np.eye(4)
labels = names[NoiseModel(transition).flip(np.searchsorted(names, y), random_state=0)]
wrong = labels != y
print(f"{wrong.sum()} of {len(y)} labels are wrong")

# %%
# The audit
# ---------
# Pass the rows, the labels and the noise rates. If you do not know the noise rates, leave ``noise``
# out. They are then estimated, with a warning if the estimate rests on assumptions.

report = audit(X, labels, noise=transition)
print(report)

# %%
# The first suspects
# ------------------

figure, axes = plt.subplots(2, 8, figsize=(9, 3), layout="constrained")
first = report.suspects[:16]
for ax, row, observed, proposed in zip(
    axes.ravel(), first.row, first.observed, first.proposed, strict=True
):
    ax.imshow(X[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"“{observed}” → {proposed}")
    ax.axis("off")
figure.suptitle("the sixteen most suspicious labels, and the proposed labels")
plt.show()

# %%
# How reliable the list is
# ------------------------
# The share of wrong labels among the first suspects, measured and stated by the audit. The audit
# proposes to correct the first ``n_suspects``, at an expected false discovery rate of 10%.

order = np.argsort(report.label_posterior[np.arange(len(y)), np.searchsorted(names, labels)])
stated = 1 - report.label_posterior[order, np.searchsorted(names, labels[order])]
checked = np.arange(1, len(y) + 1)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(checked, np.cumsum(wrong[order]) / checked, color=COLOURS["optimized"], label="measured")
ax.plot(
    checked,
    np.cumsum(stated) / checked,
    color=COLOURS["refined"],
    ls="--",
    label="stated by the audit",
)
ax.axvline(report.n_suspects, color=FAINT, lw=1)
ax.annotate(
    "n_suspects", (report.n_suspects, 0.2), xytext=(5, 0), textcoords="offset points", color=FAINT
)
ax.set(
    xlim=(1, 300),
    ylim=(0, 1.05),
    xlabel="number of suspects, most likely wrong first",
    ylabel="share of wrong labels",
)
ax.legend(loc="lower right")
plt.show()

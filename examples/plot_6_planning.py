"""
More rows or cleaner labels?
============================

Before any effort is made, ``theory.plan`` says what it would bring: more rows with labels as noisy as now,
labels that are flipped less often, or a check of some of the rows.
"""

# %%
# One setting
# -----------
# 1600 rows with 400 features, of classes that overlap, and labels of which 40% and 30% are flipped.

import matplotlib.pyplot as plt

from unflip import NoiseModel, theory
from unflip.report.style import COLOURS, FAINT, LOOK

plt.rcParams.update(LOOK)

noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
plan = theory.plan(n=1600, p=400, mean_norm=1.2, noise=noise)
print(f"accuracy now {plan.accuracy:.3f}, with clean labels {plan.oracle_accuracy:.3f}")
print(f"with rows without end {plan.bayes_accuracy:.3f}")
print(f"the rows are worth {plan.clean_rows:.0f} rows with clean labels")
print(f"checking 100 of them is worth {plan.worth_in_rows(100):.0f} further noisy rows")

# %%
# Three ways to spend
# -------------------

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True, layout="constrained")
efforts = (
    (plan.more_rows, "rows, labels as noisy as now"),
    (plan.checked_rows, "rows checked, of 1600"),
    (plan.cleaner_labels, "share of the flips that remains"),
)
levels = {"now": plan.accuracy, "all labels right": plan.oracle_accuracy, "rows without end": plan.bayes_accuracy}
for ax, (curve, effort) in zip(axes, efforts, strict=True):
    ax.plot(curve.effort, curve.accuracy, color=COLOURS["optimized"])
    for value in levels.values():
        ax.axhline(value, color=FAINT, lw=0.8, ls=":")
    ax.set_xlabel(effort)
axes[0].set_xscale("log")
axes[0].set_ylabel("accuracy on clean labels")
axes[2].invert_xaxis()
for word, value in levels.items():
    axes[1].annotate(word, (1600, value), xytext=(0, 3), textcoords="offset points", ha="right", color=FAINT)
plt.show()

# %%
# When is a check worth it?
# -------------------------
# The noisier the labels, the more noisy rows a single checked one replaces.

rates = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for pi_neg, colour in ((0.5, COLOURS["optimized"]), (0.8, COLOURS["unbiased"])):
    models = [NoiseModel.binary(eps_pos=rate, eps_neg=rate, pi_neg=pi_neg) for rate in rates]
    worth = [theory.plan(n=1600, p=400, mean_norm=1.2, noise=model).worth_in_rows(100) / 100 for model in models]
    ax.plot(rates, worth, marker="o", color=colour, label=f"{pi_neg:.0%} of the rows in class 0")
ax.set(xlabel="share of labels that are flipped, both classes alike", ylabel="noisy rows that one check replaces")
ax.set_yscale("log")
ax.legend()
plt.show()

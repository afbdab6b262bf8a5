"""
More rows or cleaner labels?
============================

``theory.plan`` predicts what an effort would gain, before you make it: more rows with the same
noise, cleaner labels, or checking the labels of some rows.
"""

# %%
# One setting
# -----------
# 1600 rows with 400 features, overlapping classes, and noise rates of 40% and 30%.

import matplotlib.pyplot as plt

from unflip import NoiseModel, theory
from unflip.plotting.style import COLOURS, FAINT, LOOK

plt.rcParams.update(LOOK)

noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
plan = theory.plan(n=1600, p=400, mean_norm=1.2, noise=noise)
print(f"accuracy now {plan.accuracy:.3f}, with clean labels {plan.oracle_accuracy:.3f}")
print(f"accuracy with infinitely many rows {plan.bayes_accuracy:.3f}")
print(f"the data are equivalent to {plan.clean_rows:.0f} rows with clean labels")
print(f"checking 100 labels is equivalent to {plan.equivalent_rows(100):.0f} more noisy rows")

# %%
# Three kinds of effort
# ---------------------

figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), sharey=True, layout="constrained")
efforts = (
    (plan.more_rows, "rows, with the same noise"),
    (plan.checked_rows, "labels checked, of 1600"),
    (plan.cleaner_labels, "noise rates, relative to now"),
)
levels = {
    "now": plan.accuracy,
    "clean labels": plan.oracle_accuracy,
    "infinitely many rows": plan.bayes_accuracy,
}
for ax, (curve, effort) in zip(axes, efforts, strict=True):
    ax.plot(curve.effort, curve.accuracy, color=COLOURS["optimized"])
    for value in levels.values():
        ax.axhline(value, color=FAINT, lw=0.8, ls=":")
    ax.set_xlabel(effort)
axes[0].set_xscale("log")
axes[0].set_ylabel("accuracy on clean labels")
axes[2].invert_xaxis()
for word, value in levels.items():
    axes[1].annotate(
        word, (1600, value), xytext=(0, 3), textcoords="offset points", ha="right", color=FAINT
    )
plt.show()

# %%
# When to check labels
# --------------------
# The noisier the labels, the more noisy rows one checked label replaces.

rates = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for pi_neg, colour in ((0.5, COLOURS["optimized"]), (0.8, COLOURS["unbiased"])):
    models = [NoiseModel.binary(eps_pos=rate, eps_neg=rate, pi_neg=pi_neg) for rate in rates]
    equivalent = [
        theory.plan(n=1600, p=400, mean_norm=1.2, noise=model).equivalent_rows(100) / 100
        for model in models
    ]
    ax.plot(
        rates, equivalent, marker="o", color=colour, label=f"{pi_neg:.0%} of the rows in class 0"
    )
ax.set(
    xlabel="noise rate, the same in both classes",
    ylabel="noisy rows that one checked label replaces",
)
ax.set_yscale("log")
ax.legend()
plt.show()

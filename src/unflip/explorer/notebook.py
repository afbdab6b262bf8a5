"""The page: sliders, and what `unflip.explorer.page` says to where they stand."""

import marimo

app = marimo.App(width="full", app_title="unflip explore", css_file="page.css")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    from unflip.explorer.answer import CHOICES, Setting
    from unflip.explorer.page import render

    return CHOICES, Setting, mo, np, render


@app.cell
def _(CHOICES, Setting, mo, np):
    def slider(label, steps, value):
        return mo.ui.slider(steps=steps, value=value, label=label, show_value=True, full_width=True)

    start = Setting()
    counts = [round(lead * 10**power) for power in (1, 2, 3, 4) for lead in (1, 1.5, 2, 3, 5, 7)] + [100000]
    rates = np.linspace(0, 0.9, 91).round(2).tolist()
    n = slider("n, rows", counts, start.n)
    p = slider("p, features", counts, start.p)
    mean_norm = slider("‖μ‖, half the distance", np.linspace(0, 5, 101).round(2).tolist(), start.mean_norm)
    eps_pos = slider("ε₊, flipped positives", rates, start.eps_pos)
    eps_neg = slider("ε₋, flipped negatives", rates, start.eps_neg)
    pi_neg = slider("π, true negatives", np.linspace(0.02, 0.98, 97).round(2).tolist(), start.pi_neg)
    reg = slider("γ, penalty", [float(f"{10**power:.2g}") for power in np.linspace(-3, 3, 61)], start.reg)
    rho = slider("ρ₊ − ρ₋ of LPC", np.linspace(-4, 4, 161).round(2).tolist(), start.rho)
    targets = mo.ui.dropdown(list(CHOICES), value=start.targets, label="targets", allow_select_none=False)
    fit_intercept = mo.ui.switch(value=start.fit_intercept, label="intercept")
    sliders = f"{n}{p}{mean_norm}{reg}{eps_pos}{eps_neg}{pi_neg}{rho}"
    title = "What accuracy to expect from flipped labels"
    mo.Html(
        f'<div class="unflip-explorer"><h1>{title}</h1>'
        f'<div class="unflip-controls">{sliders}{targets}{fit_intercept}</div></div>'
    )
    return eps_neg, eps_pos, fit_intercept, mean_norm, n, p, pi_neg, reg, rho, targets


@app.cell
def _(Setting, eps_neg, eps_pos, fit_intercept, mean_norm, mo, n, p, pi_neg, reg, render, rho, targets):
    mo.Html(
        render(
            Setting(
                n=n.value,
                p=p.value,
                mean_norm=mean_norm.value,
                eps_pos=eps_pos.value,
                eps_neg=eps_neg.value,
                pi_neg=pi_neg.value,
                reg=reg.value,
                targets=targets.value,
                rho=rho.value,
                fit_intercept=fit_intercept.value,
            )
        )
    )
    return


if __name__ == "__main__":
    app.run()

"""The result of an audit, with its summary, its DataFrame and its HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from os import PathLike
from typing import Any, Self

import numpy as np

from unflip._utils.record_tables import lines_of
from unflip._utils.validation import as_count, as_number, as_path, shown
from unflip._utils.warnings import warn_caller
from unflip.auditing import prose
from unflip.auditing.explanation import Explainer, Explanation
from unflip.auditing.findings import Findings
from unflip.auditing.ordinary_model import ordinary_accuracy
from unflip.auditing.reasons import FittedRows, NamedInputs
from unflip.auditing.shown_rows import ShownRows
from unflip.calibration.interval import Interval
from unflip.estimation.noise_estimator import AssumedNoiseWarning
from unflip.labels.codes import UNLABELLED

_N_SHOWN = 5  # suspects that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Findings):
    """Result of `audit` and `audit_scores`; ``print`` shows a summary.

    Parameters
    ----------
    evidence : Evidence
        Probabilities and noise model.
    false_discovery_rate : float
        Maximum expected false discovery rate: share of correct labels among the first
        ``n_suspects`` suspects.
    before_checks : Audit, optional
        The audit of the same rows without trusted labels; None if none were passed as a sample.
    n_unsure : int
        Rows of a file of checked rows without a true label. They count as unchecked.
    shown : ShownRows
        What pages and notebooks show of each row.
    fitted_rows : FittedRows, optional
        The samples and the fit to them, by reference, to explain suspects.

    Examples
    --------
    >>> from unflip import NoiseModel, audit
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(300, 20, mean_norm=3.0, random_state=0)
    >>> noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    >>> report = audit(X, noise.flip(y, random_state=0), noise=noise)
    >>> report
    <Audit of 300 rows: n_suspects=39, noise_source='given'>
    >>> report.suspects.row[:3].tolist(), report.suspects.proposed[:3].tolist()
    ([175, 192, 256], [1, 1, 1])
    """

    shown: ShownRows = field(default_factory=ShownRows)
    fitted_rows: FittedRows | None = field(default=None, kw_only=True)

    def to_frame(self) -> Any:
        """Return a copy of the suspects as a pandas DataFrame."""
        suspects = self.suspects
        if isinstance(suspects, np.recarray):
            raise ImportError(
                "to_frame needs pandas: install it, or use .suspects, a NumPy record array."
            )
        return suspects.copy()

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        texts: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        images: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        """Write the audit as one HTML file, to review the suspects (see docs/report.md).

        Parameters
        ----------
        path : str or path
            File to write. An existing file is replaced only after the new one is complete.
        texts, ids : sequence of str, optional
            Text and id to show for each row; one of each for each of the n rows.
        images : sequence of path or array, optional
            Image of each row: a file, or its pixels of shape (height, width) or (height, width, 3).
        feature_names : sequence of str, optional
            Names of the columns of X, as for `explain`.
        """
        try:
            page = import_module("unflip.auditing.html.audit_page")
        except ImportError as error:
            raise ImportError(
                f'to_html needs {error.name}: install it with pip install "unflip[cli]".'
            ) from None
        shown = self.showing(texts=texts, ids=ids, images=images).shown
        page.write_page(self, as_path(path, "path"), shown=shown, feature_names=feature_names)

    def showing(
        self,
        *,
        texts: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        images: Sequence[Any] | None = None,
    ) -> Audit:
        """Return the same audit, with what notebooks and pages show of each row.

        Parameters are those of `to_html`.
        """
        passed: dict[str, Any] = {"texts": texts, "ids": ids, "images": images}
        changes = {name: each for name, each in passed.items() if each is not None}
        shown = replace(self.shown, **changes)
        return replace(self, shown=shown.checked(len(self.evidence.codes)))

    def explain(self, row: int, *, feature_names: Sequence[str] | None = None) -> Explanation:
        """Return why a row is suspect: inputs that favour the proposed class, and similar rows.

        The inputs are those of the linear fit to all rows, which includes the label of the row
        itself: it favours the observed class a little. The probability of a suspect does not use
        this label. Kernel features and ``estimator=`` have no inputs to name, then there are
        similar rows alone.

        Parameters
        ----------
        row : int
            A row with a label, for example one of ``suspects.row``.
        feature_names : sequence of str, optional
            Names of the columns of X, for example ``vectorizer.get_feature_names_out()``. By
            default they are those of a DataFrame.

        Returns
        -------
        Explanation
            ``print`` shows the main reasons.

        Examples
        --------
        >>> from unflip import NoiseModel, audit
        >>> from unflip.datasets import make_mixture
        >>> X, y = make_mixture(300, 3, mean_norm=3.0, random_state=0)
        >>> noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
        >>> report = audit(X, noise.flip(y, random_state=0), noise=noise)
        >>> reason = report.explain(report.suspects.row[0], feature_names=["a", "b", "c"])
        >>> print(reason.observed, reason.proposed, reason.inputs["name"][0])
        0 1 c
        >>> total = reason.constant + reason.inputs["contribution"].sum()
        >>> bool(abs(total - reason.log_odds) < 1e-10)
        True
        """
        place = as_count(row, "row", most=len(self.evidence.codes) - 1)
        if self.evidence.codes[place] == UNLABELLED:
            raise ValueError(f"Row {place} has no label to explain: pass a row of .suspects.")
        explainer = self.explainer(feature_names)
        if explainer is None:
            raise ValueError(
                "audit_scores gets no samples, so it cannot explain a row: use audit(X, y)."
            )
        return explainer.explain(place)

    def explainer(self, feature_names: Sequence[str] | None = None) -> Explainer | None:
        """Return what explains rows; None without samples. It may hold a copy of X: drop it."""
        fit = self.fitted_rows
        if fit is None:
            return None
        if feature_names is not None:
            fit = fit.named(feature_names)
        return Explainer(self.evidence, fit.opened())

    def explained_by(self, inputs: NamedInputs, source: Any) -> Self:
        """Return the audit with named inputs behind the columns of X, such as words.

        Parameters
        ----------
        inputs : NamedInputs
            The fitted transformer that made X.
        source : DataFrame or sequence
            What it transforms, with as many rows as X.
        """
        if self.fitted_rows is None:
            return self
        return replace(self, fitted_rows=replace(self.fitted_rows, inputs=inputs, source=source))

    @cached_property
    def ordinary_accuracy_interval(self) -> Interval | None:
        """Accuracy on clean labels of an ordinary model trained on these labels, with its interval.

        The model is scikit-learn's `LogisticRegression`, fitted to X and the noisy labels, with the
        regularization strength of the best cross-validation (5 folds). Its out-of-fold predictions
        are compared with `label_posterior`. The 95% interval assumes what ``expected_accuracy``
        assumes. None if X is not an array in memory, or is too large to fit the model quickly.
        """
        if self.fitted_rows is None:
            return None
        return ordinary_accuracy(self.fitted_rows, self.evidence)

    @property
    def summary(self) -> dict[str, str]:
        """The findings in words: a paragraph for each heading."""
        return prose.summary(self)

    def __str__(self) -> str:
        paragraphs = self.summary
        lines = [
            f"row {row}: {observed!r} -> {proposed!r} (probability wrong {probability:.3f})"
            for row, observed, proposed, probability in lines_of(self.suspects[:_N_SHOWN])
        ]
        n = len(self.suspects)
        rows = "the 1 row" if n == 1 else f"all {n} rows"
        listed = (
            f" .suspects lists {rows} for which another class is more likely, most likely wrong "
            "first:"
        )
        if not lines:
            listed = ""
        paragraphs["Suspects"] += "\n  ".join([listed, *lines])
        return "\n".join(f"{heading}: {text}" for heading, text in paragraphs.items())

    def _repr_html_(self) -> str | None:
        try:
            view = import_module("unflip.auditing.html.notebook_view")
        except ImportError:  # of Jinja2: notebooks then show the text
            return None
        html: str = view.notebook_view(self)
        return html

    def __repr__(self) -> str:
        n = len(self.evidence.codes)
        return (
            f"<Audit of {n} rows: n_suspects={self.n_suspects}, noise_source={self.noise_source!r}>"
        )


def warn_of_assumptions(audit: Audit) -> None:
    """Warn if the labels contradict class-conditional noise and no checked row replaces it."""
    if not audit.is_calibrated and audit.dependence.rejected:
        warn_caller(prose.CONTRADICTED.format(p=audit.dependence.p_value), AssumedNoiseWarning)


def checked_rate(false_discovery_rate: float) -> float:
    """Return the false discovery rate; raise ValueError if it is not strictly between 0 and 1."""
    rate = as_number(false_discovery_rate, "false_discovery_rate")
    if not 0 < rate < 1:
        raise ValueError(
            f"false_discovery_rate = {shown(false_discovery_rate)} must lie strictly between 0 and "
            "1, for example 0.1."
        )
    return rate

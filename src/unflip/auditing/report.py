"""The result of an audit, with its summary, its DataFrame and its HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from unflip._utils.record_tables import lines_of
from unflip._utils.validation import as_number, as_path, shown
from unflip._utils.warnings import warn_caller
from unflip.auditing import prose
from unflip.auditing.findings import Findings
from unflip.auditing.shown_rows import ShownRows
from unflip.estimation.noise_estimator import AssumedNoiseWarning

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
        """
        try:
            page = import_module("unflip.auditing.html.audit_page")
        except ImportError as error:
            raise ImportError(
                f'to_html needs {error.name}: install it with pip install "unflip[cli]".'
            ) from None
        shown = self.showing(texts=texts, ids=ids, images=images).shown
        page.write_page(self, as_path(path, "path"), shown=shown)

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

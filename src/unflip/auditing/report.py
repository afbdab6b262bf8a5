"""The result of an audit, with its summary, its DataFrame and its HTML page."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np

from unflip._utils.typing import IntArray
from unflip._utils.validation import as_count, as_number, as_path, shown
from unflip.auditing import prose
from unflip.auditing.findings import Findings
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.classes import UNCHECKED

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

    def check_next(self, m: int) -> IntArray:
        """Return m rows to check next.

        If the noise rates were estimated from the labels, these rows improve the rates: they are a
        stratified random sample (`TrustedSubset.suggest`), and their true labels can be passed as
        ``trusted=``. Otherwise they are the rows with the least certain labels, by
        1 − Σ P(true class)², which improve a classifier most. These are not a random sample: pass
        ``noise=`` together with their true labels, because rates estimated from them are biased.
        """
        unchecked = np.flatnonzero(self.evidence.truth == UNCHECKED)
        n_rows = as_count(m, "m", most=len(unchecked))
        if self.evidence.noise.from_labels or self.assumption:
            return self._rows_for_rates(n_rows)
        certainty = (self.label_posterior[unchecked] ** 2).sum(axis=1)
        return np.asarray(unchecked[np.argsort(certainty, kind="stable")[:n_rows]])

    def to_frame(self) -> Any:
        """Return the suspects as a pandas DataFrame."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise ImportError(
                "to_frame needs pandas: install it, or use .suspects, a NumPy record array."
            ) from None
        return pandas.DataFrame({name: self.suspects[name] for name in self.suspects.dtype.names})

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        texts: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Write the audit as one HTML file, to review the suspects (see docs/report.md).

        Parameters
        ----------
        path : str or path
            File to write. An existing file is replaced only after the new one is complete.
        texts, ids : sequence of str, optional
            Text and id to show for each row; one of each for each of the n rows.
        """
        try:
            page = import_module("unflip.auditing.html.audit_page")
        except ImportError as error:
            raise ImportError(
                f'to_html needs {error.name}: install it with pip install "unflip[cli]".'
            ) from None
        page.write_page(self, as_path(path, "path"), texts=texts, ids=ids)

    @property
    def summary(self) -> dict[str, str]:
        """The findings in words: a paragraph for each heading."""
        return prose.summary(self)

    def __str__(self) -> str:
        paragraphs = self.summary
        lines = [
            f"row {row}: {observed!r} -> {proposed!r} (probability wrong {probability:.3f})"
            for row, observed, proposed, probability in self.suspects[:_N_SHOWN].tolist()
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

    def __repr__(self) -> str:
        n = len(self.evidence.codes)
        return (
            f"<Audit of {n} rows: n_suspects={self.n_suspects}, noise_source={self.noise_source!r}>"
        )

    def _rows_for_rates(self, m: int) -> IntArray:
        if m == 0:
            return np.empty(0, dtype=np.intp)
        evidence = self.evidence
        features = evidence.log_scores[:, 1:] - evidence.log_scores[:, :1]
        trusted = np.where(evidence.truth == UNCHECKED, np.nan, evidence.truth)
        with warnings.catch_warnings():
            # A class may have no checked row yet: this method suggests which rows to check.
            warnings.simplefilter("ignore", UserWarning)
            strata = TrustedSubset(trusted).fit(features, evidence.codes)
        return strata.suggest(m, random_state=0)


def checked_rate(false_discovery_rate: float) -> float:
    """Return the false discovery rate; raise ValueError if it is not strictly between 0 and 1."""
    rate = as_number(false_discovery_rate, "false_discovery_rate")
    if not 0 < rate < 1:
        raise ValueError(
            f"false_discovery_rate = {shown(false_discovery_rate)} must lie strictly between 0 and "
            "1, for example 0.1."
        )
    return rate

"""The result of an audit: its findings, in words, as a table and as a page."""

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
        What everything is computed from.
    false_discovery_rate : float
        Expected share of right labels among the first ``n_suspects`` suspects.
    """

    def check_next(self, m: int) -> IntArray:
        """Return the rows whose check tells most.

        Where the rates are a guess, rows that pin down the rates, drawn at random within strata
        (`TrustedSubset.suggest`): their true labels can be given as ``trusted=``. Otherwise the
        rows whose label is most in doubt, by 1 − Σ P(true class)²: what checking a row adds to what
        its label tells a classifier.
        """
        unchecked = np.flatnonzero(self.evidence.truth == UNCHECKED)
        wanted = as_count(m, "m", most=len(unchecked))
        if self.noise_source == "anchor rows":
            return self._rows_for_rates(wanted)
        certainty = (self.label_posterior[unchecked] ** 2).sum(axis=1)
        return np.asarray(unchecked[np.argsort(certainty, kind="stable")[:wanted]])

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
        """Write the audit as one HTML file, with the suspects to look through, accept or reject (see docs/report.md).

        Parameters
        ----------
        path : str or path
            Where to write it. A file that is there is replaced once the new one is whole.
        texts, ids : sequence of str, optional
            What to show of each row, and its name; one for each of the n rows.
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
        """The findings in words: a paragraph under each heading."""
        return prose.summary(self)

    def __str__(self) -> str:
        paragraphs = self.summary
        lines = [
            f"row {row}: {observed!r} should be {proposed!r} (probability wrong {probability:.3f})"
            for row, observed, proposed, probability in self.suspects[:_N_SHOWN].tolist()
        ]
        listed = f" The list has {len(self.suspects)} rows, worst first:" if lines else ""
        paragraphs["Suspects"] += "\n  ".join([listed, *lines])
        return "\n".join(f"{heading}: {text}" for heading, text in paragraphs.items())

    def __repr__(self) -> str:
        return f"<Audit of {len(self.evidence.codes)} rows: {self.n_suspects} suspects, rates from {self.noise_source}>"

    def _rows_for_rates(self, m: int) -> IntArray:
        if m == 0:
            return np.empty(0, dtype=np.intp)
        evidence = self.evidence
        features = evidence.log_scores[:, 1:] - evidence.log_scores[:, :1]
        known = np.where(evidence.truth == UNCHECKED, np.nan, evidence.truth)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # no checked row of a class: that is why more are asked for
            strata = TrustedSubset(known).fit(features, evidence.codes)
        return strata.suggest(m, random_state=0)


def checked_rate(false_discovery_rate: float) -> float:
    """Return the false-discovery rate, or an error where it is not a share between 0 and 1."""
    rate = as_number(false_discovery_rate, "false_discovery_rate")
    if not 0 < rate < 1:
        raise ValueError(
            f"false_discovery_rate = {shown(false_discovery_rate)} must lie strictly between 0 and "
            "1, for example 0.1."
        )
    return rate

"""The answer of an audit: which labels look wrong, how sure that is, what it costs, and what to do next."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._typing import FloatArray, IntArray
from unflip._validation import as_count, as_number, as_path, shown
from unflip.auditing.dependence import Dependence, dependence_test
from unflip.auditing.evidence import Evidence
from unflip.auditing.outlook import Outlook
from unflip.auditing.suspects import (
    Table,
    expected_wrong,
    n_to_act_on,
    sensitivity_table,
    suspect_table,
    table,
    unlabelled_table,
    worst_first,
)
from unflip.estimation.trusted import TrustedSubset
from unflip.labels import UNCHECKED
from unflip.noise import NoiseModel

_N_SHOWN = 5
_N_RATES_SHOWN = 6
SURPRISING = 0.01  # p-value below which the labels are said to contradict the noise model
_PLANNED_CHECKS = (10, 50, 100)

NO_SIGNAL = (
    "The features do not predict the labels better than chance, so no label can be called wrong: add rows or other "
    "features."
)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What `audit` and `audit_scores` found. Printing it gives a summary in words.

    Parameters
    ----------
    evidence : Evidence
        What everything is computed from.
    false_discovery_rate : float
        Share of right labels that is accepted among the first ``n_suspects`` suspects.
    """

    evidence: Evidence
    false_discovery_rate: float = 0.1

    @property
    def classes(self) -> NDArray[Any]:
        """Labels, sorted."""
        return self.evidence.classes

    @property
    def noise(self) -> NoiseModel:
        """The noise model, with priors; of votes, how the label that most of them favour differs from the true one."""
        return self.evidence.noise.model

    @property
    def noise_std(self) -> FloatArray:
        """Standard errors of ``noise.transition``, (k, k); 0 where the noise model was given."""
        return self.evidence.noise.errors

    @property
    def noise_source(self) -> str:
        """Where the rates come from: "given", "trusted rows", "mixture", "anchor rows" or "votes"."""
        return self.evidence.noise.source

    @property
    def assumption(self) -> str:
        """What was assumed of the rates rather than seen, in words; empty where nothing was."""
        return self.evidence.noise.assumption

    @cached_property
    def label_posterior(self) -> FloatArray:
        """P(true class | row, observed label or votes), (n, k); 0 and 1 for trusted rows."""
        return self.evidence.label_posterior.copy()

    @cached_property
    def suspects(self) -> Table:
        """Rows whose label looks wrong, worst first, with fields row, observed, proposed and probability.

        The probability is P(label wrong); ``proposed`` is the likeliest other class. Listed are the first
        ``n_suspects`` and all others for which another class is likelier than the observed one; last, the trusted rows
        whose label is wrong.
        """
        return suspect_table(self.evidence, self.n_suspects)

    @cached_property
    def unlabelled(self) -> Table:
        """Rows without any vote, the surest first, with fields row, proposed and probability, that of ``proposed``."""
        return unlabelled_table(self.evidence)

    @cached_property
    def n_suspects(self) -> int:
        """The largest m whose mean P(label wrong) among the first m suspects is at least 1 − false_discovery_rate.

        Trusted rows do not count: what they are is known.
        """
        return n_to_act_on(self.evidence, self.false_discovery_rate)

    @cached_property
    def checked(self) -> IntArray:
        """Trusted rows, in the order of the data."""
        return np.flatnonzero(self.evidence.truth != UNCHECKED)

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong labels among all rows."""
        return self._expected_wrong[0]

    @property
    def expected_wrong_std(self) -> float:
        """Its standard error, from the rows and from the rates."""
        return self._expected_wrong[1]

    @property
    def expected_accuracy(self) -> float:
        """Accuracy to expect on new rows with clean labels."""
        return self.evidence.accuracy

    @property
    def expected_accuracy_std(self) -> float:
        """Its standard error."""
        return self.evidence.accuracy_std

    @cached_property
    def dependence(self) -> Dependence:
        """Test of whether flips depend on more of a row than its true class."""
        return dependence_test(self.evidence)

    @cached_property
    def sensitivity(self) -> Table:
        """How the answers move with each rate, by its standard error or by 0.05 where it was given.

        Fields: ``true_class`` whose flip rate moves (the first row: none does), ``rate`` its flip rate then, and under
        it ``n_suspects``, ``expected_wrong``, ``expected_accuracy`` and ``overlap``: the share of the first
        ``n_suspects`` suspects that would still be the worst.
        """
        return sensitivity_table(self.evidence, self.false_discovery_rate)

    @cached_property
    def plan(self) -> Table:
        """Accuracy now, after checks of the first suspects, of all rows, and with twice the rows; see `accuracy_after`.

        Fields: ``effort`` in words, ``checked`` rows, ``accuracy``.
        """
        n = len(self.evidence.codes)
        counts = sorted({m for m in (*_PLANNED_CHECKS, self.n_suspects) if 0 < m < n})
        lines = [("now", 0, self.expected_accuracy)]
        lines += [(f"check {m} suspects", m, self.accuracy_after(m)) for m in counts]
        lines += [("check all rows", n, self.accuracy_after(n))]
        lines += [("twice the rows", 0, self.accuracy_after(0, growth=2.0))]
        effort, checked, accuracy = zip(*lines, strict=True)
        return table(effort=effort, checked=checked, accuracy=accuracy)

    def accuracy_after(self, m: int, *, growth: float = 1.0) -> float:
        """Return the accuracy to expect once the m worst rows are checked, set right, and the classifier refitted.

        With ``growth`` there are that many times as many rows, the new ones labelled as noisily as these.
        A rough guide from the isotropic theory (see docs/audit.md); NaN for `audit_scores` without a dimension.
        """
        times = as_number(growth, "growth")
        if not 1 <= times < np.inf:
            raise ValueError(f"growth = {shown(growth)} must be at least 1 and finite: 2 means twice as many rows.")
        checked = self._worst_first[: as_count(m, "m", most=len(self.evidence.codes))]
        return self._outlook.after(checked, times)

    def check_next(self, m: int) -> IntArray:
        """Return the rows whose check tells most.

        Where the rates are a guess, rows that pin down the rates, drawn at random within strata
        (`TrustedSubset.suggest`): their true labels can be given as ``trusted=``. Otherwise the rows whose label is
        most in doubt, by 1 − Σ P(true class)²: what checking a row adds to what its label tells a classifier.
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
            raise ImportError("to_frame needs pandas: install it, or use .suspects, a NumPy record array.") from None
        return pandas.DataFrame({name: self.suspects[name] for name in self.suspects.dtype.names})

    def to_html(
        self, path: str | PathLike[str], *, texts: Sequence[str] | None = None, ids: Sequence[str] | None = None
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
            page = import_module("unflip.report.audit_page")
        except ImportError as error:
            raise ImportError(f'to_html needs {error.name}: install it with pip install "unflip[cli]".') from None
        page.write_page(self, as_path(path, "path"), texts=texts, ids=ids)

    @property
    def summary(self) -> dict[str, str]:
        """What was found, in words: a sentence under each heading."""
        said = {
            "How noisy": self._said_of_noise(),
            "What it costs": self._said_of_cost(),
            "Suspects": self._said_of_suspects(),
            "Next": self._said_of_next(),
        }
        if len(self.unlabelled):
            said["Unlabelled"] = self._said_of_unlabelled()
        return said | {"Assumed": self._said_of_assumptions()}

    def __str__(self) -> str:
        said = self.summary
        said["Suspects"] += f" {len(self.suspects)} are listed, worst first:"
        for row, observed, proposed, probability in self.suspects[:_N_SHOWN].tolist():
            line = f"row {row}: {observed!r} should be {proposed!r} (probability wrong {probability:.3f})"
            said["Suspects"] += f"\n  {line}"
        return "\n".join(f"{heading}: {sentence}" for heading, sentence in said.items())

    def __repr__(self) -> str:
        return f"<Audit of {len(self.evidence.codes)} rows: {self.n_suspects} suspects, rates from {self.noise_source}>"

    @cached_property
    def _expected_wrong(self) -> tuple[float, float]:
        return expected_wrong(self.evidence)

    @cached_property
    def _worst_first(self) -> IntArray:
        return worst_first(self.evidence)

    @cached_property
    def _outlook(self) -> Outlook:
        return Outlook.of(self.evidence)

    def _rows_for_rates(self, m: int) -> IntArray:
        if m == 0:
            return np.empty(0, dtype=np.intp)
        evidence = self.evidence
        features = evidence.log_scores[:, 1:] - evidence.log_scores[:, :1]
        known = np.where(evidence.truth == UNCHECKED, np.nan, evidence.truth)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # no checked row of a class: that is why more are asked for
            strata = TrustedSubset(known).fit(features, evidence.codes)
        return strata.suggest(m, random_state=0)

    def _said_of_noise(self) -> str:
        labels, flipped = self.classes.tolist(), 1 - np.diag(self.noise.transition)
        order, rest = range(len(labels)), ""
        if len(labels) > _N_RATES_SHOWN:
            order = np.argsort(-flipped, kind="stable")[:_N_RATES_SHOWN].tolist()
            rest = f" and no more of the other {len(labels) - _N_RATES_SHOWN} classes"
        rates = ", ".join(f"{flipped[a]:.0%}{self._doubt(a)} of {labels[a]!r}" for a in order) + rest
        n = int(self.evidence.labelled.sum())
        wrong = f"about {self.expected_wrong:.0f} ± {self.expected_wrong_std:.0f} of {n}"
        return f"{wrong} {self._label}s are wrong; flipped are {rates} (rates: {self.noise_source})."

    @property
    def _label(self) -> str:
        return "label" if self.evidence.noise.votes is None else "majority label"

    def _doubt(self, a: int) -> str:
        error = self.noise_std[a, a]
        return f" ± {error:.0%}" if error > 0 else ""

    def _said_of_cost(self) -> str:
        now = f"{self.expected_accuracy:.1%} ± {self.expected_accuracy_std:.1%}"
        clean = self.accuracy_after(len(self.evidence.codes))
        instead = "" if np.isnan(clean) else f", about {clean:.1%} were every label right"
        chance = "" if self.evidence.has_signal else f" {NO_SIGNAL}"
        return f"a classifier has an expected accuracy of {now} on clean labels{instead}.{chance}"

    def _said_of_suspects(self) -> str:
        return f"{self._said_of_number()}{self._said_of_checked()}"

    def _said_of_number(self) -> str:
        share = f"{self.false_discovery_rate:.0%}"
        if self.n_suspects == 0:
            return (
                f"no {self._label} looks wrong enough to act on, if at most about {share} of those should turn out "
                "right."
            )
        if self.n_suspects == 1:
            return f"1 {self._label} looks wrong, with a probability of {self.suspects.probability[0]:.1%}."
        return f"{self.n_suspects} {self._label}s look wrong, of which about {share} should turn out right."

    def _said_of_checked(self) -> str:
        labelled = self.checked[self.evidence.labelled[self.checked]]
        if not len(labelled):
            return ""
        wrong = int(self.evidence.wrong[labelled].sum())  # each is 0 or 1
        return f" Of {len(labelled)} checked {self._label}s {wrong} {'was' if wrong == 1 else 'were'} wrong."

    def _said_of_next(self) -> str:
        if self.noise_source == "anchor rows":
            return "the rates are a guess, so have the rows of .check_next(100) checked and give them as trusted=."
        doubtful = ".check_next(m) has the rows most in doubt."
        return f"look through the first .n_suspects of .suspects; {doubtful}" if self.n_suspects else doubtful

    def _said_of_unlabelled(self) -> str:
        right = float(self.unlabelled.probability.sum())
        return (
            f"{len(self.unlabelled)} rows have no vote; about {right:.0f} of the labels that .unlabelled "
            "proposes are right."
        )

    def _said_of_assumptions(self) -> str:
        if self.evidence.noise.votes is not None:
            return "each worker votes alone, by the true class and nothing else of the row (not tested)."
        test = self.dependence
        said = "flips depend on the true class alone"
        if np.isnan(test.p_value):
            return f"{said} (too few rows to test it)."
        verdict = "the labels do NOT look like that" if test.p_value < SURPRISING else "the labels do not contradict it"
        return f"{said}; {verdict} (p = {test.p_value:.2g})."


def checked_rate(false_discovery_rate: float) -> float:
    """Return the false-discovery rate, or an error where it is not a share between 0 and 1."""
    rate = as_number(false_discovery_rate, "false_discovery_rate")
    if not 0 < rate < 1:
        raise ValueError(
            f"false_discovery_rate = {shown(false_discovery_rate)} must lie strictly between 0 and 1, for example 0.1."
        )
    return rate

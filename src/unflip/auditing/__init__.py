"""Audits of labels: which are probably wrong, what they cost, and what to do next.

The input is features with labels or votes, or the probabilities of any model. The result is an
`Audit`, with numbers (`findings`), sentences (`prose`) and an HTML page (`html`), or an
`Evaluation` of a model.
"""

from unflip.auditing.checks_file import CheckedRows, n_unsure, read_checks, true_labels
from unflip.auditing.evaluation import Comparison, Evaluation, compare, evaluate
from unflip.auditing.evaluation.sampled_checks import SelectedChecksWarning
from unflip.auditing.findings import Findings
from unflip.auditing.from_rows import audit
from unflip.auditing.from_scores import audit_scores
from unflip.auditing.outliers import UnusualRows, distance_deviations, unusual_rows
from unflip.auditing.report import Audit, checked_rate
from unflip.auditing.shown_rows import ShownRows
from unflip.auditing.suspects import n_suspects_at

__all__ = [
    "Audit",
    "CheckedRows",
    "Comparison",
    "Evaluation",
    "Findings",
    "SelectedChecksWarning",
    "ShownRows",
    "UnusualRows",
    "audit",
    "audit_scores",
    "checked_rate",
    "compare",
    "distance_deviations",
    "evaluate",
    "n_suspects_at",
    "n_unsure",
    "read_checks",
    "true_labels",
    "unusual_rows",
]

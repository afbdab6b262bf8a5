"""Which labels are probably wrong, what that costs, and what to do about it.

In come samples with labels or votes, or the probabilities of any model. Out comes an `Audit`: its
findings as numbers (`findings`), in words (`prose`), and as a page (`html`).
"""

from unflip.auditing.from_rows import audit
from unflip.auditing.from_scores import audit_scores
from unflip.auditing.report import Audit, checked_rate

__all__ = [
    "Audit",
    "audit",
    "audit_scores",
    "checked_rate",
]

"""Which labels look wrong, what that costs, and what to do about it."""

from unflip.auditing.report import Audit
from unflip.auditing.rows import audit
from unflip.auditing.scores import audit_scores

__all__ = ["Audit", "audit", "audit_scores"]

"""Class indices that stand for a missing label."""

from __future__ import annotations

#: Class index of a row without a trusted label.
UNCHECKED = -1

#: Class index of a row without a label or votes.
UNLABELLED = -1

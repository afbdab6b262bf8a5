"""The interface of cleanlab: replace its imports by imports from this module.

Results have the names and shapes of cleanlab's, and unflip's contents: see
docs/coming_from_cleanlab.md for what differs.
"""

from unflip.compat.clean_learning import CleanLearning
from unflip.compat.datalab import Datalab
from unflip.compat.label_issues import find_label_issues, get_label_quality_scores

__all__ = ["CleanLearning", "Datalab", "find_label_issues", "get_label_quality_scores"]

"""Features of samples for linear classifiers, computed without labels.

Input: samples, or a table. Output: samples in a space in which a linear fit is a kernel fit, or the
columns of the table as scaled numbers.
"""

from unflip.features.kernel_features import KernelFeatures
from unflip.features.table_features import TableFeatures

__all__ = ["KernelFeatures", "TableFeatures"]

"""Features of samples for linear classifiers, computed without labels.

Input: samples, a table, or image files. Output: samples in a space in which a linear fit is a
kernel fit, the columns of the table as scaled numbers, or the edges and colours of the images.
"""

from unflip.features.image_features import ImageFeatures
from unflip.features.kernel_features import KernelFeatures
from unflip.features.table_features import TableFeatures

__all__ = ["ImageFeatures", "KernelFeatures", "TableFeatures"]

"""Features of samples that make a linear classifier nonlinear, computed without labels.

Input: samples. Output: samples in a space in which a linear fit is a kernel fit.
"""

from unflip.features.kernel_features import KernelFeatures
from unflip.features.kernels import KERNELS
from unflip.features.transformed_rows import transformed_rows

__all__ = ["KERNELS", "KernelFeatures", "transformed_rows"]

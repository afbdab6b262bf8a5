"""Features of samples that make a linear classifier nonlinear, computed without labels.

Input: samples. Output: samples in a space in which a linear fit is a kernel fit.
"""

from unflip.features.kernel_features import KernelFeatures

__all__ = ["KernelFeatures"]

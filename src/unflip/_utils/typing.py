"""The type names shared by every room."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

#: An array of any array-API namespace: NumPy, CuPy, torch, ...
Array: TypeAlias = Any

#: What scipy.sparse holds; it has no types of its own.
SparseArray: TypeAlias = Any

#: Rows of data: a dense array, or a matrix or array of scipy.sparse.
Rows: TypeAlias = Any

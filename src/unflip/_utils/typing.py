"""Type aliases of the package."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

#: An array of any array-API namespace: NumPy, CuPy, torch, ...
Array: TypeAlias = Any

#: An array or matrix of scipy.sparse, which has no type annotations.
SparseArray: TypeAlias = Any

#: Rows of data: a dense array, lazy rows, or an array or matrix of scipy.sparse.
Rows: TypeAlias = Any

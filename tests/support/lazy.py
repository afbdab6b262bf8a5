"""Array-like sources of rows that count what is read from them."""

import numpy as np


class Stored:
    """Rows that can only be sliced; counts the numbers read, in total and at most at a time."""

    def __init__(self, X):
        self._X = X
        self.shape = X.shape
        self.dtype = X.dtype
        self.n_read = 0
        self.n_most = 0

    def __getitem__(self, key):
        rows, columns = key
        if not (isinstance(rows, slice) and isinstance(columns, slice)):
            raise TypeError("rows can only be sliced")
        block = np.array(self._X[rows, columns])
        self.n_read += block.size
        self.n_most = max(self.n_most, block.size)
        return block

    def __array__(self, *_, **__):
        raise AssertionError("all rows were loaded at once")

    @property
    def n_passes(self):
        """Number of times that each number was read, on average."""
        return self.n_read / (self.shape[0] * self.shape[1])


class Shrinking(Stored):
    """Rows whose blocks lack one row after `after` numbers were read."""

    def __init__(self, X, after):
        super().__init__(X)
        self._after = after

    def __getitem__(self, key):
        block = super().__getitem__(key)
        return block[:-1] if self.n_read > self._after else block


class Failing(Shrinking):
    """Rows that raise OSError after `after` numbers were read."""

    def __getitem__(self, key):
        if self.n_read > self._after:
            raise OSError("the disk is gone")
        return Stored.__getitem__(self, key)

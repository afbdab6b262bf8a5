"""Sources of rows that are no arrays, and that know what was read of them."""

import numpy as np


class Stored:
    """Rows that can be sliced and nothing else; it counts the numbers read, in all and at a time."""

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype
        self.n_read = self.n_most = 0

    def __getitem__(self, key):
        rows, columns = key
        if not (isinstance(rows, slice) and isinstance(columns, slice)):
            raise TypeError("rows are read by slices alone")
        block = np.array(self._X[rows, columns])
        self.n_read, self.n_most = self.n_read + block.size, max(self.n_most, block.size)
        return block

    def __array__(self, *_, **__):
        raise AssertionError("all rows were loaded at once")

    @property
    def n_passes(self):
        """How often each number was read, on average."""
        return self.n_read / (self.shape[0] * self.shape[1])


class Shrinking(Stored):
    """Rows that lose one after so many numbers were read."""

    def __init__(self, X, after):
        super().__init__(X)
        self._after = after

    def __getitem__(self, key):
        block = super().__getitem__(key)
        return block[:-1] if self.n_read > self._after else block


class Failing(Shrinking):
    """Rows that cannot be read any more after so many numbers were."""

    def __getitem__(self, key):
        if self.n_read > self._after:
            raise OSError("the disk is gone")
        return Stored.__getitem__(self, key)

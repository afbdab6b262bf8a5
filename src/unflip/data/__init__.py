"""Rows of features, whatever they are stored in, and the training set.

In come arrays, sparse matrices, DataFrames, Dask collections, files and anything that slices like
an array. Out come `CentredRows`, which pass over the rows block by block, `DistinctRows`, which
merges duplicates, and `TrainingSet`, which adds the labels. Knows no model.
"""

from unflip.data.centred import CentredRows, DenseRows, SparseRows, check_magnitude, product
from unflip.data.chunks import (
    Block,
    Layout,
    block_height,
    checked_classes,
    names_of,
    parts_of,
    read_chunk,
    sorted_classes,
)
from unflip.data.duplicates import DistinctRows, chosen, relative_weights
from unflip.data.engines.blocks import evenly_spaced_rows, is_on_host
from unflip.data.engines.engine import dask_engine, is_dask
from unflip.data.lazy import (
    LazyRows,
    PartitionedRows,
    as_rows,
    in_memory,
    opened,
    row_by_row,
    unchanged_on_error,
    validated,
)
from unflip.data.parquet import Path, as_paths, column_names, parquet_chunks
from unflip.data.training_set import TrainingSet

__all__ = [
    "Block",
    "CentredRows",
    "DenseRows",
    "DistinctRows",
    "Layout",
    "LazyRows",
    "PartitionedRows",
    "Path",
    "SparseRows",
    "TrainingSet",
    "as_paths",
    "as_rows",
    "block_height",
    "check_magnitude",
    "checked_classes",
    "chosen",
    "column_names",
    "dask_engine",
    "evenly_spaced_rows",
    "in_memory",
    "is_dask",
    "is_on_host",
    "names_of",
    "opened",
    "parquet_chunks",
    "parts_of",
    "product",
    "read_chunk",
    "relative_weights",
    "row_by_row",
    "sorted_classes",
    "unchanged_on_error",
    "validated",
]

"""Rows of features in any storage, duplicates, and the training set.

Input: arrays, sparse matrices, DataFrames, Dask collections, files and any object that slices like
an array. Output: `CentredRows`, products of the rows about their mean without a centred copy,
`DistinctRows`, which merges duplicates, and `TrainingSet`, which adds the labels. This folder knows
no model.
"""

from unflip.data.centred import CentredRows
from unflip.data.chunks import (
    LARGEST,
    Block,
    Layout,
    block_height,
    checked_classes,
    feature_names_of,
    read_chunk,
    sorted_classes,
    split_chunk,
)
from unflip.data.dense import DenseRows
from unflip.data.duplicates import DistinctRows, relative_weights, take_rows
from unflip.data.engines.blocks import BLOCK_VALUES, evenly_spaced_rows, is_on_host
from unflip.data.engines.engine import dask_engine, is_dask
from unflip.data.groups import Folds, check_classes_of_groups, group_folds, n_effective_of
from unflip.data.input_rows import (
    as_rows,
    in_memory,
    lazy_for_dask,
    open_dask,
    unchanged_on_error,
    validated,
)
from unflip.data.lazy import LazyRows, PartitionedRows, RowMapping, is_lazy
from unflip.data.parquet import Path, as_paths, column_names, parquet_chunks
from unflip.data.row_trees import NearRows, near_rows
from unflip.data.rows import centred_rows, check_magnitude, product
from unflip.data.sparse_rows import SparseRows
from unflip.data.training_set import TrainingSet

__all__ = [
    "BLOCK_VALUES",
    "LARGEST",
    "Block",
    "CentredRows",
    "DenseRows",
    "DistinctRows",
    "Folds",
    "Layout",
    "LazyRows",
    "NearRows",
    "PartitionedRows",
    "Path",
    "RowMapping",
    "SparseRows",
    "TrainingSet",
    "as_paths",
    "as_rows",
    "block_height",
    "centred_rows",
    "check_classes_of_groups",
    "check_magnitude",
    "checked_classes",
    "column_names",
    "dask_engine",
    "evenly_spaced_rows",
    "feature_names_of",
    "group_folds",
    "in_memory",
    "is_dask",
    "is_lazy",
    "is_on_host",
    "lazy_for_dask",
    "n_effective_of",
    "near_rows",
    "open_dask",
    "parquet_chunks",
    "product",
    "read_chunk",
    "relative_weights",
    "sorted_classes",
    "split_chunk",
    "take_rows",
    "unchanged_on_error",
    "validated",
]

"""Data files: tables of any format, with columns of labels, votes and features."""

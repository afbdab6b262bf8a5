"""Files in and out: tables of any format, their columns of labels, votes and features."""

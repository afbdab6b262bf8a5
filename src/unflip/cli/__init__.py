"""The command-line program `unflip`, and the files that it reads and writes."""

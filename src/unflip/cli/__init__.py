"""The command line: commands, the files they read and write, and the explorer."""

"""The commands, one module for each or for two related ones; imported on demand."""

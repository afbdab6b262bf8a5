"""The simulation and the picture of `unflip demo`."""

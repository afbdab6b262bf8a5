"""Simulation and figure of `unflip demo`."""

"""Helpers independent of the library: arrays, validation, warnings, randomness, files.

Import the modules one by one: some need scikit-learn, and `unflip.theory` loads without it.
"""

"""Helpers that know nothing of the library: arrays, validation, warnings, randomness, files.

Modules are imported one by one: some need scikit-learn, and the theory loads without it.
"""

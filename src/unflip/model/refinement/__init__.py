"""Refinement of the targets: rounds of fit, calibration and new targets for each row."""

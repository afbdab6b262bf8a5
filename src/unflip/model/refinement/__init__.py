"""Rounds of fit, calibration and better targets: each sample's target from its label and score."""

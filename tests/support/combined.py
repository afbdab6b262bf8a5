"""Combined log-odds of two classifiers."""

from unflip.calibration.combined_scores import Combination


def combined_log_odds(first, second, observations, noise):
    """Return the combined log-odds, and the share of the second ones."""
    combination = Combination.fit(first, second, observations, noise)
    return combination.log_odds(first, second), combination.share

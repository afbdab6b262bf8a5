"""What the data say of themselves: the quantities that the theory takes as known."""

from unflip.estimation.mixture import estimate_mixture

__all__ = ["estimate_mixture"]

"""The page of `unflip explore`: sliders, and the theory's predictions for their values."""

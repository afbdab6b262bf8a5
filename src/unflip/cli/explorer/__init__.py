"""The page of `unflip explore`: sliders, and what the theory predicts for them."""

"""A page of sliders: what the theory predicts, redrawn as they move."""

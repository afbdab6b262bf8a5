"""The audit as one HTML file, to review the suspects in a browser."""

"""Files of rows and labels: reading them, building features, and writing what was found. No printing."""

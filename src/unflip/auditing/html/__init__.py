"""The HTML page of an audit, to review the suspects in a browser."""

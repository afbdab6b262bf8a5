"""HTML pages: of an audit, to review the suspects in a browser, and of an evaluation."""

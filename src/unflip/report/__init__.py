"""Pictures of results: the only room that draws."""

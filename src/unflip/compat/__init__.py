"""The doors to other tools: the interface of cleanlab, and the formats of labelling tools."""

"""The live page: a model that a reader changes, and what follows from each change."""

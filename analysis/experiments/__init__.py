"""The experiments, in the order in which a report shows them; each file has `run`-function, drawing and texts."""

from . import positions, profiles, attention

__all__ = ["attention", "positions", "profiles"]

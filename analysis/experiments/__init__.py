"""The experiments, in the order in which a report shows them; each file has `run`-function, drawing and texts."""

from . import positions, profiles, attention, predict

__all__ = ["attention", "positions", "predict", "profiles"]

"""The experiments, in the order in which a report shows them."""

from . import positions, profiles, attention, predict

__all__ = ["attention", "positions", "predict", "profiles"]

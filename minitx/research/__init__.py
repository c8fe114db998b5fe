"""What a researcher does every week: steer, probe, collect activations, look up examples."""

from .probe import Probe, fit_probe
from .steering import SteeringVector, steer, steering_vector

__all__ = ["Probe", "SteeringVector", "fit_probe", "steer", "steering_vector"]

"""What a researcher does every week: steer, probe, collect activations, look up examples."""

from .steering import SteeringVector, steer, steering_vector

__all__ = ["SteeringVector", "steer", "steering_vector"]

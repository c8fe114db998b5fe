"""What a researcher does every week: steer, probe, collect activations, look up examples."""

from .collection import Collection, open_collection
from .examples import top_examples
from .probe import Probe, fit_probe
from .shards import collect
from .steering import SteeringVector, steer, steering_vector

__all__ = [
    "Collection",
    "Probe",
    "SteeringVector",
    "collect",
    "fit_probe",
    "open_collection",
    "steer",
    "steering_vector",
    "top_examples",
]

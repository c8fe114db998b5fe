"""What a researcher does every week: steer, probe, collect activations, look up examples."""

from .collection import Collection, open_collection
from .examples import top_examples
from .probe import Probe, fit_probe
from .sae import SparseAutoencoder, load_sae
from .shards import collect
from .steering import SteeringVector, steer, steering_vector

__all__ = [
    "Collection",
    "Probe",
    "SparseAutoencoder",
    "SteeringVector",
    "collect",
    "fit_probe",
    "load_sae",
    "open_collection",
    "steer",
    "steering_vector",
    "top_examples",
]

"""Experiments run with few documents, and what they say: for tests of one, and of all."""

import numpy as np

from minitx.analysis import experiments  # noqa: F401  (fills the registry)
from minitx.analysis.contract import registry

SMALL = {
    "alignment": {"pairs": "dates", "documents": 20},
    "positions": {"shuffles": 20, "documents": 2},
    "profiles": {"documents": 3},
    "attention": {"show": 8},
    "predict": {"sentence": "He went out of the room.", "guesses": 3},
    "rotation": {"gauge": 2, "compare": 2},
    "lags": {"documents": 3},
    "conditions": {"documents": 2},
    "sources": {"documents": 2},
    "kernel": {"documents": 3},
    "cca": {"documents": 6, "shuffles": 5},
    "models": {"others": "tiny-bert", "shuffles": 20},
    "residual": {"documents": 2, "tokens": 30, "tables": 2},
    "remove-positions": {"documents": 2},
    "relearn": {"documents": 8, "tokens": 48, "steps": 3},
    "attribution": {"documents": 2, "tokens": 12},
    "norms": {"documents": 6},
    "dial": {"documents": 3, "tokens": 32, "losses": 1},
    "chain": {"documents": 2, "tokens": 32},
    "notch": {"documents": 3, "tokens": 32, "bands": 3, "losses": 1},
    "scale-positions": {"documents": 3, "tokens": 24},
    "inject-positions": {"documents": 3, "tokens": 24},
    "shift": {"documents": 3, "tokens": 20, "steps": 3},
    "probe": {"documents": 6, "tokens": 32, "mask": "linear"},
    "mask-positions": {"documents": 3, "tokens": 24, "evaluations": 8},
    "queries-keys": {"head": "L0H1,L1H0"},
    "extraction": {"documents": 2},
    "components": {"documents": 3},
    "singular-values": {},
    "bases": {"documents": 4, "tokens": 30, "rotations": 20},
    "mechanisms": {"documents": 6, "tokens": 16, "every": 4},
    "reviews": {"documents": 60},
    "joint-grid": {"documents": 2, "tokens": 16},
    "joint-space": {"head": "L0H1,L1H2", "pairs": "sleeping:brown", "note": True},
    "parts": {},
    "shapes": {"sentence": "He went out."},
    "mixing": {"documents": 2, "show": 5},
    "slices": {"documents": 2},
    "projections": {"documents": 2},
    "attribute": {},
    "heads": {"texts": 4},
    "patch": {"n_pairs": 4},
    "paths": {"n_pairs": 4},
    "circuit": {"n_pairs": 4, "steps": 2, "random": 10},
}


def small(experiment):
    """Options with which an experiment takes seconds: those of SMALL, or few short documents."""
    few = {"documents": max(3, experiment.least_documents), "tokens": 24}
    names = experiment.option_names
    return SMALL.get(experiment.name, {key: n for key, n in few.items() if key in names})


def run(name, model, **options):
    """The arrays of an experiment, as its words and its figure take them."""
    result = registry.get(name).run(model, **options)
    return {key: np.asarray(value) for key, value in result.items()}


def says(name, r):
    return registry.get(name).says(r)


def verdict(name, r):
    return registry.get(name).answer(r).verdict

"""What passes through a model, reduced as soon as it exists, so that memory does not grow with the documents.

N documents, T tokens, L layers, H heads, R offsets.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from minitx import forward

from .profiles import profile
from .progress import track

WORKERS = min(os.cpu_count() or 1, 8)  # each holds the patterns of one layer of one document


def profiles(model, tokens, what):
    """Attention profile of every head on every document, documents side by side: [N T] -> [N L H R]."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return np.array(list(track(pool.map(partial(head_profiles, model), tokens), what, len(tokens))))


def head_profiles(model, document):
    """Attention profile of every head on one document: [T] -> [L H R]."""
    found = {}

    def tap(name, x, layer=None):
        if name == "pattern":
            found[layer] = profile(x)[0]
        return x
    forward(model, document, at=tap)
    return np.array([found[layer] for layer in sorted(found)])

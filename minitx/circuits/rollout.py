"""Attention rollout: attention multiplied through the layers (Abnar & Zuidema 2020).

A token of layer l mixes those of layer l - 1 by (mean_h A + I) / 2, half of it from the stream; the
product over layers says how much of each token of the text is in it. The values, W_O, norms and
MLPs are left out: a head that writes nothing counts as much as any other. Axis letters: model.py.
"""

import numpy as np

from ..trace import Trace

POINTS = "pattern", "enc_pattern"


def rollout(trace: Trace, point: str = "pattern") -> np.ndarray:
    """Attention rollout: share of each input token in each token after every layer, [L B T T].

    Entry [l, b, i, j]: of text b after layer l, the share of input token j in token i; over j the
    shares sum to 1. trace: one that keeps `point` of all layers: "pattern", or "enc_pattern" of the
    encoder of an encoder-decoder. Rollout uses attention weights alone, not values, W_O, norms
    or MLPs: compare it with `logit_attribution`, or replace a token and see what changes. Raises
    KeyError if the patterns of any layer were not kept, ValueError for another
    point, or for no Trace.

    >>> import minitx
    >>> from minitx import circuits
    >>> trace = minitx.run(minitx.load("tiny-gpt2"), "He said that", keep="pattern")
    >>> rolled = circuits.rollout(trace)
    >>> rolled.shape, bool(abs(rolled.sum(axis=-1) - 1).max() < 1e-6)
    ((4, 1, 4, 4), True)
    """
    if point not in POINTS:
        raise ValueError(f"point is {point!r}; wanted attention inside a text: {', '.join(POINTS)}")
    if not isinstance(trace, Trace):
        raise ValueError(f"trace is {trace!r:.80}; wanted a Trace, as minitx.run gives it")
    A = trace.stack(point).mean(axis=2, dtype=np.float64)  # [L B T T]
    mixed = (A + np.eye(A.shape[-1])) / 2
    rolled = [mixed[0]]
    for layer in mixed[1:]:
        rolled.append(layer @ rolled[-1])
    return np.stack(rolled)

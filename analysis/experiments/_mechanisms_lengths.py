"""The loss of the same tokens in shorter and longer inputs, in nats.

A document is cut into consecutive windows of n tokens, whose special tokens stand at the ends of
each. Compared are the tokens that are predicted at every length; longer windows give them more
context. N documents, T tokens of one, K lengths.
"""

import numpy as np

from ..measures import losses


def of_document(model, document, lengths, every):
    """Sums of the losses [K] of tokens predicted at every length, and the number of these tokens.

    model: reads T tokens. every: of so many of the document's tokens a masked model is asked one;
    those of a window are hidden at once, the same share of it at every length.
    """
    by_length = np.array([in_windows(model, document, n, every) for n in lengths])
    common = np.isfinite(by_length).all(axis=0)
    return by_length[:, common].sum(axis=1), common.sum()


def in_windows(model, document, n, every):
    """Loss of each ordinary token of a document [T] in windows of n tokens; nan: not predicted."""
    document = np.asarray(document)
    before, after = losses.ends(model, document)
    end = len(document) - after
    size = n - before - after
    cost = np.full(end - before, np.nan)
    for start in range(0, len(cost) - size + 1, size):
        body = document[before:end][start : start + size]
        window = np.concatenate([document[:before], body, document[end:]])
        if model.config.causal:
            places = np.arange(max(before, 1), before + size)
            cost[start + places - before] = losses.causal(model, window)[places - 1]
        else:
            first = -start % every
            asked = losses.gaps(model, window, every=every, start=first)
            cost[start + first : start + size : every] = asked
    return cost

"""Where a guess comes from, as a page holds it: what each token and each head adds to one guess.

Three ways, of the model and, as the null, of random weights asked for the same guess at the same
place (attributions.py). T tokens, L layers, H heads, W ways.
"""

import numpy as np

from minitx.loading.labels import predicted

from ..contract.registry import NotApplicable
from ..measures import attributions, document_features
from .packing import pack
from .writers import BLANKS

HEADS = "masked", "causal", "sequence", "next_sentence"  # of cross-entropy over words or classes
WAYS = "integrated", "times_input", "ablated"
SEED = 0  # of the random weights


def check(model):
    """Raise NotApplicable for a model whose guesses are not attributed."""
    head = model.config.task_head
    if model.encoder is not None or head not in HEADS:
        kind = "is an encoder-decoder" if model.encoder is not None else f"has the head {head}"
        raise NotApplicable(
            f"attribution needs one stack that predicts words or classes; this model {kind}"
        )


def of_text(model, tokens, types=None, place=None):
    """What the page shows, ready for JSON: the guess, the parts of both models, the gaps.

    types [T]: token types, those of a single text unless given. place: whose guess; None: the one
    that the text hides, else that of a masked model's middle, or of the end.
    "tokens" packs [2 W T], "heads" [2 W L H]: the model, then random weights; "mlps" [2 L] is what
    is lost without each. "gap" is, of each model, how far tokens and heads are from adding up, as a
    share of the largest part.
    """
    wanted = attributions.asked(model, tokens, types, place)
    noise = document_features.untrained(model, np.random.default_rng(SEED))
    absent = model.weights.W_E.mean(axis=0)
    by_tokens = [attributions.of_tokens(each, wanted, absent) for each in (model, noise)]
    by_heads = [attributions.of_heads(each, wanted) for each in (model, noise)]
    [what] = predicted(model, [wanted.what])
    content = {"place": wanted.place, "what": what.translate(BLANKS)}
    content["hidden"] = bool(wanted.tokens[wanted.place] != tokens[wanted.place])
    content["gap"] = [float(max(a.error, b.error)) for a, b in zip(by_tokens, by_heads)]
    for name, parts in (("tokens", by_tokens), ("heads", by_heads)):
        content[name] = pack(_stacked(parts), 2, 12)
    lost = [attributions.lost_by_mlps(each, wanted) for each in (model, noise)]
    content["mlps"] = np.round(lost, 4).tolist()
    return content


def _stacked(parts):
    """All ways of both models: [2 W ...]."""
    return np.array([[getattr(each, way) for way in WAYS] for each in parts])

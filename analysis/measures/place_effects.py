"""Where the sharpest head of a model looks, and what the loss is without positions.

Both need no table, so that they compare one way to know a position with another; each has an
interval and what chance gives. N documents, T tokens, L layers, H heads, K changes.
"""

from functools import partial

import numpy as np

from ..contract.registry import NotApplicable
from ..maths import nulls, profiles, stats
from . import context_extension, heads, losses, position_edits

QUARTERS = 4  # of the pairs of features that are turned, the fastest first
PREDICTS = "causal", "masked"


def attention(model, documents, run, what):
    """Where the sharpest head looks, and how far all heads look on average.

    The head and its offset are chosen on every other document, and measured on the others.
    """
    T = documents.T
    measure = partial(_look, model, T)
    by_document = run.gather(measure, documents, f"attention: {what}", keep=("near", "distance"))
    near = by_document["near"]
    others = near[::2].mean(axis=0) * (profiles.offsets() != 0)  # [L H R]
    layer, head, i = np.unravel_index(others.argmax(), others.shape)
    offset = profiles.offsets()[i]
    result = {"sharp_head": heads.name(layer, head), "sharp_offset": offset}
    result |= _mean("sharp", near[1::2, layer, head, i])
    result |= _mean("reach", by_document["distance"].mean(axis=(1, 2)))
    causal = model.config.causal
    even = profiles.mean_attention(profiles.uniform(T, causal), T)
    result["sharp_null"] = even[profiles.offsets() != 0].max()
    far = abs(profiles.offsets(T - 1))
    result["reach_null"] = profiles.uniform(T, causal, T - 1) @ far / T
    if model.config.rotary:
        sharpest = layer, head, int(offset)
        result["without"] = _without(model, documents, run, what, sharpest)
    return result


def _look(model, T, _, document):
    """Attention to near offsets [L H R], and the mean distance to what is looked at [L H]."""
    reach = max(T - 1, profiles.REACH)
    profile = yield heads.profiles_read(model, document, reach=reach)
    near = np.abs(profiles.offsets(reach)) <= profiles.REACH
    distance = profile @ abs(profiles.offsets(reach)) / T
    return {"near": profiles.mean_attention(profile, T)[..., near], "distance": distance}


def _mean(name, values):
    """A mean over documents [N] and its interval, by name; neither is negative."""
    ends = stats.interval(values)
    return {name: values.mean(), f"{name}_interval": np.maximum(ends, 0)}


def _without(model, documents, run, what, sharpest):
    """Attention of a rotary head at its offset when a quarter of its pairs is not turned.

    [QUARTERS], the fastest pairs first.
    """
    layer, head, offset = sharpest
    edits = [{"pos_angle": partial(_still, number=i)} for i in range(QUARTERS)]

    def measure(_, document):
        looks = [heads.head_profiles(model, document, edit)[layer, head] for edit in edits]
        return {"looks": np.array(looks)}

    looks = run.gather(measure, documents, f"pairs not turned: {what}")["looks"]
    near = profiles.mean_attention(looks / len(documents), documents.T)
    return near[:, profiles.REACH + offset]


def _still(angle, number):
    """Angles [B T r] in which one of QUARTERS of the pairs stays where it is."""
    parts = np.array_split(np.arange(angle.shape[-1]), QUARTERS)
    angle = angle.copy()
    angle[..., parts[number]] = 0
    return angle


def off(model, documents, every, seed, run, what):
    """Change of the loss, in nats per token, when nothing tells positions.

    every: of a masked model, hide one token in this many, at once. Raises NotApplicable for a model
    that predicts nothing, or has nothing to switch off.
    """
    check_head(model)
    if context_extension.mechanisms(model) == ["none"]:
        raise NotApplicable("no position mechanism, so nothing can be switched off")
    conditions = [None, position_edits.condition(position_edits.off(model.config))]

    def measure(i, document):
        costs = [_costs(model, document, condition, every, i) for condition in conditions]
        ordinary = document[documents.ordinary(len(document))]
        counts = np.bincount(ordinary, minlength=model.config.n_vocab)
        return {"total": np.sum(costs, axis=1), "n": len(costs[0]), "counts": counts}

    sums = run.gather(measure, documents, f"places off: {what}", keep=("total", "n"))
    total, n = sums["total"], sums["n"]
    result = {"loss": total[:, 0].sum() / n.sum(), "loss_null": stats.entropy(sums["counts"])}
    change = (total[:, 1] - total[:, 0])[:, None]
    return result | of_changes("off", change, n, seed)


def _costs(model, document, condition, every, i):
    """Losses of a document's tokens, or of one in `every`, which are hidden at once."""
    if model.config.task_head == "causal":
        return losses.causal(model, document, condition=condition)
    return losses.gaps(model, document, condition, every, start=i % every)


def of_changes(name, change, n, seed):
    """Mean of changes [N K] of n [N] tokens, its interval and null, by name."""
    by_chance = nulls.random_signs(change, n.sum(), seed)
    result = {name: change.sum(axis=0) / n.sum()}
    result[f"{name}_interval"] = stats.interval(change, n).T
    result[f"{name}_null"] = np.quantile(by_chance, nulls.CHANCE, axis=0)
    if change.shape[1] == 1:
        return {key: value[0] for key, value in result.items()}
    return result


def check_head(model):
    """Raise NotApplicable if the model predicts no tokens."""
    head = model.config.task_head
    if head not in PREDICTS:
        raise NotApplicable(f"this checkpoint's head is {head}: it predicts no tokens")

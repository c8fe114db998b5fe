"""The note's own search for a and c on one sentence, in all heads, and c by distance in the plane.

Its maths is in maths/joint_note.py. L layers, H heads, R ranges of a, C scales. Queries rotated at
random are the null: arithmetic alone.
"""

import numpy as np

from ..maths import joint, joint_note

RANGES = 10.0 ** np.arange(-2, 3)  # of a, in standard deviations of the components of the keys


def of_sentence(layers, turns):
    """Results by name, from joint_fit's layers and a random rotation for each head [L H d d]."""
    records = [_of_layer(layer, turns[layer.index]) for layer in layers]
    result = {name: np.stack([x[name] for x in records], axis=-2) for name in records[0]}
    result |= {"note_range": RANGES, "note_scale": joint_note.SCALES}
    return result | _headline(result)


def _of_layer(layer, turn):
    """Ranges first, then heads: correlations and collapse [R H]; by scale [C H]."""
    q, k, seen = layer.q, layer.k, layer.seen
    turned = q @ turn
    unit = k.std()
    records = {name: [] for name in ("a", "correlation", "correlation_null", "gathered", "effect")}
    for reach in RANGES * unit:
        a, strongest = joint_note.search(q, k, reach, seen)
        records["a"].append(a / unit)
        records["correlation"].append(strongest)
        records["correlation_null"].append(joint_note.search(turned, k, reach, seen).correlation)
        records["gathered"].append(joint_note.gathered(q, k + a[:, None, None]))
        records["effect"].append(joint_note.effect_of_scale(q, k, a, seen))
    result = {f"note_by_range_{name}": np.array(x) for name, x in records.items()}
    result["note_gathered_before"] = joint_note.gathered(q, k)[None]
    result["note_by_scale"] = joint_note.by_scale(q, k, seen)
    result["note_by_scale_null"] = joint_note.by_scale(turned, k, seen)
    return result | _near(layer, result["note_by_scale"])


def _near(layer, by_scale):
    """Mean 1/rank of the strongest keys in the plane [1 H], at c = 1 and at the best c."""
    strongest = layer.pattern.argmax(axis=-1)
    scale = joint_note.SCALES[by_scale.argmin(axis=0)]
    n = max((layer.seen.sum(axis=1) > 1).sum(), 1)
    result = {"note_plane_c": scale[None]}
    for name, c in (("_before", np.ones_like(scale)), ("", scale)):
        a = joint.translation(layer.q.mean(axis=-2), layer.k.mean(axis=-2), 1.0, "euclidean")
        far = joint_note.in_plane(*joint.normalised(layer.q, layer.k, c, a))
        ranks = joint.ranks(far, layer.seen)
        result[f"note_plane_mrr{name}"] = joint.nearness(ranks, strongest, layer.seen)[:1] / n
    counts = layer.seen.sum(axis=1)
    chance = [(1 / np.arange(1, count + 1)).mean() for count in counts if count > 1]
    result["note_plane_mrr_null"] = np.full((1, len(scale)), np.mean(chance))
    return result


def _headline(r):
    """Means over all heads, at the narrowest and at the widest range."""
    result = {}
    for name, null in (("correlation", ""), ("correlation", "_null"), ("gathered", "")):
        by_range = r[f"note_by_range_{name}{null}"]
        result[f"note_{name}_narrow{null}"] = abs(by_range[0]).mean()
        result[f"note_{name}_wide{null}"] = abs(by_range[-1]).mean()
    result["note_effect_of_c"] = r["note_by_range_effect"].max()
    for null in ("", "_null"):
        result[f"note_plane_correlation{null}"] = r[f"note_by_scale{null}"].min(axis=0).mean()
        result[f"note_plane_near{null}"] = r[f"note_plane_mrr{null}"].mean()
    result["note_plane_near_before"] = r["note_plane_mrr_before"].mean()
    result["note_plane_c_mean"] = np.exp(np.log(r["note_plane_c"]).mean())
    return result


NUMBERS = """
    note_correlation_[narrow|wide]: correlation of products and cosine distances, its size, with the
        note's own a from the [narrowest|widest] range, mean of all heads
        null: queries of each head rotated at random: arithmetic alone
    note_plane_correlation: correlation of products and distances in the plane, with the c for which
        it is lowest, mean of all heads
        null: queries rotated at random, with a c of their own
"""
SAYS = (  # what the note's search shows
    "With the note's own a, one number for all components, the correlation of products and cosine "
    "distances is {note_correlation_narrow:.2f} on the narrowest range and "
    "{note_correlation_wide:.2f} on the widest (queries rotated at random: "
    "{note_correlation_narrow_null:.2f} and {note_correlation_wide_null:.2f}), while the spread of "
    "the queries falls from {note_gathered_narrow:.2f} to {note_gathered_wide:.1g} of their "
    "distance to the keys; c changes this correlation by {note_effect_of_c:.0e} at most. By "
    "distance in the plane c is {note_plane_c_mean:.2f}, the correlation "
    "{note_plane_correlation:.2f} (turned: {note_plane_correlation_null:.2f}), and mean 1/rank of "
    "the strongest key goes from {note_plane_near_before:.2f} to {note_plane_near:.2f} (chance: "
    "{note_plane_near_null:.2f})."
)

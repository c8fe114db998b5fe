"""What the joint space of queries and keys shows, over all heads: names, numbers and words."""

import numpy as np

from ..maths import joint
from ..runner import verdict
from ..runner.registry import Answer
from . import joint_fit

MAJORITY = 0.5  # of the heads
MOST = f"the most in {joint_fit.SHUFFLES} shuffles of the keys"
FULL = "the full space"
PLANE = "the plane of the first two principal components"
CLOSER = "share of all heads whose strongest keys come closer, by mean 1/rank, in"
FARTHER = "share of all heads whose strongest keys go farther away, in"
SAME = "share of all heads whose strongest keys stay as near as before, in"
RANK = "mean 1/rank of the strongest key by distance, all heads, in"
FIRST = "share of the queries whose strongest key is the nearest, after, in"
SHUFFLED = "mean 1/rank of shuffled keys"
TURNED = "queries of each head turned at random: arithmetic alone"
GAINED = {
    "closer": f"{CLOSER} {FULL}",
    "closer_null": MOST,
    "farther": f"{FARTHER} {FULL}",
    "farther_null": MOST,
}
MORE_GAINED = {
    "closer_plane": f"{CLOSER} {PLANE}",
    "closer_plane_null": MOST,
    "farther_plane": f"{FARTHER} {PLANE}",
    "farther_plane_null": MOST,
    "same": f"{SAME} {FULL}",
    "same_null": MOST,
    "same_plane": f"{SAME} {PLANE}",
    "same_plane_null": MOST,
}
# those that tell most first
NUMBERS = {
    **GAINED,
    "mrr_before_mean": f"{RANK} {FULL}, before",
    "mrr_before_mean_null": SHUFFLED,
    "mrr_mean": f"{RANK} {FULL}, after",
    "mrr_mean_null": SHUFFLED,
    "correlation_before_mean": "correlation of products and distances before, mean of all heads",
    "correlation_before_mean_null": TURNED,
    "correlation_mean": "correlation of products and distances after, moved and scaled, mean of "
    "all heads",
    "correlation_mean_null": f"{TURNED}, with their own scale",
    "spearman_before_mean": "Spearman's correlation of products and distances before, text by "
    "text, mean of all heads",
    "spearman_before_mean_null": TURNED,
    "spearman_mean": "Spearman's correlation of products and distances after, moved and scaled, "
    "text by text, mean of all heads",
    "spearman_mean_null": f"{TURNED}, with their own scale",
    "mrr_turned_mean": f"{RANK} {FULL}, after, for queries turned at random with a move and a "
    "scale of their own",
    "first_mean": f"{FIRST} {FULL}",
    "first_mean_null": "share for shuffled keys",
    "first_plane_mean": f"{FIRST} {PLANE}",
    "first_plane_mean_null": "share for shuffled keys",
    "mrr_plane_before_mean": f"{RANK} {PLANE}, before",
    "mrr_plane_before_mean_null": SHUFFLED,
    "mrr_plane_mean": f"{RANK} {PLANE}, after",
    "mrr_plane_mean_null": SHUFFLED,
    **MORE_GAINED,
    "better": "share of the heads whose correlation of products and distances goes down",
    "better_null": TURNED,
    "correlation_moved_mean": "correlation of products and distances with the means of queries and "
    "keys moved together, not scaled, mean of all heads",
    "correlation_moved_mean_null": TURNED,
    "c_mean": "geometric mean of the scale c over all heads",
    "n_bound": "heads whose c is the smallest or the largest that was tried",
    "n_kept": "heads left as they are, as no scale gave a lower correlation",
    "changed": "largest change of an attention weight by moving and scaling, in float64",
    "changed_products": "largest change of a product by scaling alone, as a share of the largest "
    "product",
    "documents": "documents read",
}
# results [L H] of joint_fit.fit that are averaged over all heads, each with its null
AVERAGED = (
    "correlation_before",
    "correlation_moved",
    "correlation",
    "spearman_before",
    "spearman",
    "mrr_before",
    "mrr",
    "mrr_plane_before",
    "mrr_plane",
    "first",
    "first_plane",
)


def summary(fitted):
    """Means over all heads, to be shown; fitted: what joint_fit.fit gives."""
    result = {}
    for name in AVERAGED:
        for null in ("", "_null"):
            result[name + "_mean" + null] = fitted[name + null].mean()
    result["mrr_turned_mean"] = fitted["mrr_turned_null"].mean()
    c = fitted["c"]
    result["c_mean"] = np.exp(np.log(c).mean())
    result["n_bound"] = np.isin(c, joint.SCALES[[0, -1]]).sum()
    result["n_kept"] = fitted["kept"].sum()
    for null in ("", "_null"):
        after, before = fitted["correlation" + null], fitted["correlation_before" + null]
        result["better" + null] = (after < before).mean()
    result["changed"] = fitted["attention_change"].max()
    result["changed_products"] = fitted["products_change"].max()
    return result


def answer(r):
    """Yes: the strongest keys come closer in most heads, and in more than with shuffled keys.

    Partly: in fewer heads, or in the plane alone.
    """
    whole = verdict.of(r, "closer", enough=MAJORITY)
    plane = verdict.of(r, "closer_plane", enough=np.inf)  # partly at most
    kind = whole.verdict if whole.verdict in verdict.EFFECTS else plane.verdict
    text = "heads whose strongest keys come closer when queries and keys are moved and scaled"
    n = r["c"].size
    value, by_chance = (f"{round(n * float(x))}" for x in (whole.value, whole.null))
    return Answer(kind, text, f"{value} of {n}", f"up to {by_chance} with shuffled keys")


def closer(r):
    """The question of the note, answered for the full space and for the plane."""
    return f"In {_closer(r, '', 'the full space')} In {_closer(r, '_plane', 'the plane')}"


def _closer(r, space, where):
    """Shares of the heads whose strongest keys come closer, go farther and stay, in one space."""
    share = {name: r[name + space] for name in joint_fit.GAINS}
    null = {name: r[f"{name}{space}_null"] for name in joint_fit.GAINS}
    before, after, chance = (r[f"mrr{space}{end}"].mean() for end in ("_before", "", "_null"))
    beyond = [name for name in ("closer", "farther") if share[name] > null[name]]
    verdict = f"{' and '.join(beyond)} beyond chance" if beyond else "neither beyond chance"
    return (
        f"{where} the strongest keys come closer in {share['closer']:.0%} of the heads (shuffled "
        f"keys: up to {null['closer']:.0%}), go farther in {share['farther']:.0%} (up to "
        f"{null['farther']:.0%}) and stay as near in {share['same']:.0%} (up to "
        f"{null['same']:.0%}): {verdict}; mean 1/rank goes from {before:.2f} to {after:.2f} "
        f"(chance: {chance:.2f})."
    )

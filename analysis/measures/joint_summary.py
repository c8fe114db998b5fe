"""What the joint space of queries and keys shows, over all heads: names, numbers and words."""

import numpy as np

from ..maths import joint
from . import joint_fit

MOST = f"the most in {joint_fit.SHUFFLES} shuffles of the keys"
FULL = "the full space"
PLANE = "the plane of the first two principal components"
CLOSER = "share of all heads whose strongest keys come closer, by mean 1/rank, in"
FARTHER = "share of all heads whose strongest keys go farther away, in"
SAME = "share of all heads whose strongest keys stay as near as before, in"
GAINED = {
    "closer": f"{CLOSER} {FULL}",
    "closer_null": MOST,
    "farther": f"{FARTHER} {FULL}",
    "farther_null": MOST,
    "same": f"{SAME} {FULL}",
    "same_null": MOST,
    "closer_plane": f"{CLOSER} {PLANE}",
    "closer_plane_null": MOST,
    "farther_plane": f"{FARTHER} {PLANE}",
    "farther_plane_null": MOST,
    "same_plane": f"{SAME} {PLANE}",
    "same_plane_null": MOST,
}
NUMBERS = {
    "documents": "documents read",
    "c_mean": "geometric mean of the scale c over all heads",
    "n_bound": "heads whose c is the smallest or the largest that was tried",
    "n_kept": "heads left as they are, as no scale gave a lower correlation",
    "correlation_before_mean": "correlation of products and distances as they are, mean of all "
    "heads",
    "correlation_before_mean_null": "the same with the queries of each head turned at random: "
    "arithmetic alone",
    "correlation_moved_mean": "the same with the means of queries and keys moved together",
    "correlation_moved_mean_null": "the same with turned queries",
    "correlation_mean": "the same with the scale c too",
    "correlation_mean_null": "the same with turned queries and their own c",
    "better": "share of the heads whose correlation goes down from before to after",
    "better_null": "the same with turned queries",
    **GAINED,
    "mrr_before_mean": "mean 1/rank of the strongest key by distance, in the full space, before",
    "mrr_before_mean_null": "the same with shuffled keys",
    "mrr_mean": "the same after",
    "mrr_mean_null": "the same with shuffled keys",
    "mrr_turned_mean": "the same after for queries turned at random, with attention, c and a of "
    "their own",
    "mrr_plane_before_mean": "the same in the plane, before",
    "mrr_plane_before_mean_null": "the same with shuffled keys",
    "mrr_plane_mean": "the same in the plane, after",
    "mrr_plane_mean_null": "the same with shuffled keys",
    "first_mean": "share of the queries whose strongest key is the nearest, in the full space, "
    "after",
    "first_mean_null": "the same with shuffled keys",
    "first_plane_mean": "the same in the plane, after",
    "first_plane_mean_null": "the same with shuffled keys",
    "changed": "largest change of an attention weight by moving and scaling, in float64",
    "changed_products": "largest change of a product by scaling alone, as a share of the largest "
    "product",
}
# results [L H] of joint_fit.fit that are averaged over all heads, each with its null
AVERAGED = (
    "correlation_before",
    "correlation_moved",
    "correlation",
    "mrr_before",
    "mrr",
    "mrr_plane_before",
    "mrr_plane",
    "first",
    "first_plane",
)


def summary(fitted):
    """Means over all heads, for people; fitted: what joint_fit.fit gives."""
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

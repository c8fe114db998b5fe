"""What the joint space of queries and keys shows, over all heads: names, numbers and words."""

from dataclasses import replace

import numpy as np

from ..contract import verdict
from ..contract.numbers import declared
from ..contract.rules import Asks, Enough, Share
from ..machine.language import filled, label, translated
from . import joint_fit

MAJORITY = 0.5  # of the heads
MOST = f"the maximum in {joint_fit.SHUFFLES} shuffles of the keys"
FULL = "the full space"
PLANE = "the plane of the first two principal components"
KEYS = "share of all heads whose most attended keys"
RANK = "mean 1/rank of the strongest key by distance, all heads, in"
TURNED = "queries of each head rotated at random: arithmetic alone"
MOVED = "[before|after, moved and scaled]"
# those that tell most first
NUMBERS = declared(f"""
    [closer|farther]: {KEYS} [come closer|move farther away] by {joint_fit.NEARER} of mean 1/rank,
        in {FULL}
        null: {MOST}
    mrr_[before_mean|mean]: {RANK} {FULL}, [before|after]
        null: mean 1/rank of shuffled keys
    correlation_[before_mean|mean]: correlation of products and distances {MOVED}, mean of all heads
        null: {TURNED}[|, with their own scale]
    spearman_[before_mean|mean]: Spearman's correlation of products and distances {MOVED}, text by
        text, mean of all heads
        null: {TURNED}[|, with their own scale]
    closer_plane: {KEYS} come closer by {joint_fit.NEARER} of mean 1/rank, in {PLANE}
        null: {MOST}
    fact n_kept: heads left unchanged, since no scale gave a lower correlation
    fact documents: documents read
""")
# results [L H] of joint_fit.fit that are averaged over all heads, each with its null
AVERAGED = ("correlation_before", "correlation", "spearman_before", "spearman", "mrr_before", "mrr")


def numbers(*names):
    """Those of NUMBERS, in this order."""
    by_name = {number.name: number for number in NUMBERS}
    return [by_name[name] for name in names]


def summary(fitted):
    """Means over all heads, to be shown; fitted: what joint_fit.fit gives."""
    result = {}
    for name in AVERAGED:
        for null in ("", "_null"):
            result[name + "_mean" + null] = fitted[name + null].mean()
    return result | {"n_kept": fitted["kept"].sum(), "changed": fitted["attention_change"].max()}


def by_gain(gain):
    """Heads in which nearness gains most, least, and in between: [L H] -> up to three pairs."""
    order = gain.ravel().argsort(kind="stable")
    numbers = dict.fromkeys(int(order[i]) for i in (-1, len(order) // 2, 0))
    return [divmod(number, gain.shape[1]) for number in numbers]


def of_heads(name):
    """A piece of a sentence: how many heads a share is."""
    return lambda r: f"{round(r['c'].size * float(r[name]))}"


# in the whole space: in the plane queries and keys lie apart until they are moved, so that those of
# random weights come closer, too
answer = Asks(
    "heads whose most attended keys are closer to their queries after moving and scaling",
    value=[of_heads("closer"), " of {c.size}"],
    chance=["up to ", of_heads("closer_null"), " with shuffled keys"],
    rule=Enough(Share("closer", enough=MAJORITY, margin=lambda r: verdict.of_few(np.size(r["c"])))),
)
of_one_text = replace(
    answer,
    measure="heads whose most attended keys in this one sentence come closer when queries and "
    "keys are moved and scaled",
)


CLOSER = (
    "{where} the most attended keys come closer, by {nearer} of mean 1/rank or more, in {closer} "
    "of the heads (shuffled keys: up to {closer_null}), go as much farther in {farther} (up to "
    "{farther_null}) and stay about as near in {same} (up to {same_null}): {verdict}; mean 1/rank "
    "goes from {before:.2f} to {after:.2f} (chance: {chance:.2f})."
)


def closer(r):
    """The question of the note, answered for the full space and for the plane."""
    return f"{_closer(r, '', 'In the full space')} {_closer(r, '_plane', 'In the plane')}"


def _closer(r, space, where):
    """Shares of the heads whose strongest keys come closer, go farther and stay, in one space."""
    share = {name: r[name + space] for name in joint_fit.GAINS}
    null = {name: r[f"{name}{space}_null"] for name in joint_fit.GAINS}
    before, after, chance = (r[f"mrr{space}{end}"].mean() for end in ("_before", "", "_null"))
    beyond = [name for name in ("closer", "farther") if share[name] > null[name]]
    names = translated(" and ").join(map(label, beyond))
    shown = filled("{names} beyond chance", names=names)
    values = {name: f"{value:.0%}" for name, value in share.items()}
    values |= {f"{name}_null": f"{value:.0%}" for name, value in null.items()}
    values |= {"before": before, "after": after, "chance": chance, "where": translated(where)}
    values["nearer"] = joint_fit.NEARER
    return filled(
        CLOSER, verdict=shown if beyond else translated("neither beyond chance"), **values
    )

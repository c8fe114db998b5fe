"""Does one component write most of an answer's logit?

A logit, or the difference of two, is the exact sum of what each head, each MLP, the embeddings and
the biases write to the stream; each head's part is the sum over the places that it reads. L layers,
H heads, T places, C components, n drawn pairs of tokens.
"""

import numpy as np

import minitx
from minitx import circuits

from ..maths import nulls
from ..measures import asked as questions
from ..measures import heads as names
from ..runner import draw, maps, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED

MOST = 0.5  # share from which one component is said to write most
COMPUTED = "head", "mlp"
SHOWN = 14  # components, and heads by place
LONG = 40  # places that are drawn


def attribute(
    model,
    run=UNSAVED,
    *,
    prompt: str = "",
    target: str = "",
    other: str = "",
    seed: options.Seed = 0,
):
    """What each head, layer and place adds to a logit, or to a difference of two.

    prompt: a text; of a masked model with its mask ("": random words that are said twice)
    target: the token whose logit is asked for, as it stands, blanks too ("": the likeliest one)
    other: the token whose logit is taken off ("": none)
    seed: seed of the drawn tokens, and of random words
    """
    questions.check(model, "attribute")
    text, target, other = _given(model, prompt, target, other, seed)
    asked = model, text, target, other
    table = circuits.logit_attribution(*asked, seed=seed)
    by_place = circuits.logit_attribution(*asked, by_place=True, seed=seed)
    labels = [_name(*row) for row in zip(table.component, table.layer, table.head)]
    result = {"components": np.array(labels), "parts": table.logits, "parts_null": table.null}
    result |= {"logit": table.logit, "gap": table.gap, "heads": table.heads}
    result |= _largest(table, labels)
    result["places"] = _places(by_place, table.heads.shape, len(questions.pieces(model, text)))
    result["pieces"] = questions.pieces(model, text)
    result["target"] = _piece(model, target)
    return result if other is None else result | {"other": _piece(model, other)}


def _given(model, prompt, target, other, seed):
    """The text, the target, and the other token or None."""
    if prompt:
        return prompt, target or _likeliest(model, prompt), other or None
    if target or other:
        raise ValueError(f"target is {target!r}, but of no prompt; wanted a prompt, too")
    asked = questions.repeats(model, 1, seed)
    return asked.clean[0], *asked.answers[0]


def _likeliest(model, prompt):
    """The id with the largest logit at the last place, or at the mask."""
    place = questions.place(model, prompt)
    return int(minitx.run(model, prompt, "logits")["logits"][0, place].argmax())


def _piece(model, token):
    return token if isinstance(token, str) else str(questions.pieces(model, [token])[0])


def _name(component, layer, head):
    """A row of the table as words: L1H2, mlp 1, word."""
    if component == "head":
        return names.name(layer, head)
    return component if layer < 0 else f"{component} {layer}"


def _largest(table, labels):
    """The largest part of a head or an MLP as a share of all of theirs; of drawn tokens."""
    computed = np.flatnonzero(np.isin(table.component, COMPUTED))
    sizes = abs(np.c_[table.logits, table.drawn][computed])  # [C 1+n]
    sizes = sizes[:, sizes.sum(axis=0) > 0]  # a token may be drawn beside itself
    of_largest = sizes.max(axis=0) / sizes.sum(axis=0)
    i = computed[sizes[:, 0].argmax()]
    result = {"largest": of_largest[0], "largest_name": labels[i]}
    result["largest_null"] = np.quantile(of_largest[1:], nulls.CHANCE)
    return result | {"largest_part": table.logits[i], "largest_part_null": table.null[i]}


def _places(table, shape, T):
    """Parts of heads by the place that they read: [L H T]."""
    places = np.zeros((*shape, T))
    mine = table.component == "head"
    where = table.layer[mine], table.head[mine], table.place[mine]
    np.add.at(places, where, table.logits[mine])
    return places


def says(r):
    """What the numbers show, in plain words."""
    exact = "the parts sum to it" if abs(r["gap"]) < 1e-3 else f"the parts lack {r['gap']:.3f}"
    order = np.argsort(-abs(r["parts"]), kind="stable")[:3]
    largest = ", ".join(f"{r['components'][i]} {r['parts'][i]:+.2f}" for i in order)
    return (
        f"The logit of {_wanted(r)} is {r['logit']:.2f}; {exact}. The largest parts: {largest}. "
        f"Of heads and MLPs {r['largest_name']} has most, {r['largest_part']:+.2f}, which is "
        f"{r['largest']:.0%} of the size of all their parts (of drawn tokens: "
        f"{r['largest_null']:.0%})."
    )


def _wanted(r):
    """The target and the other token, if there is one."""
    pieces = [draw.label(str(r[name])) for name in ("target", "other") if name in r]
    return " − ".join(pieces)


def answer(r):
    """Yes: one head or MLP has half of the size of all parts, more than for drawn tokens."""
    share = verdict.of(r, "largest", enough=MOST)
    measure = "largest part of one head or MLP, as a share of the size of all of theirs"
    value = f"{r['largest']:.0%}, {r['largest_name']}"
    return Answer(share.verdict, measure, value, f"{r['largest_null']:.0%} for drawn tokens")


def plot(r):
    """The largest parts with their nulls; all heads; the heads' parts by place."""
    figure = draw.figure(12.5, 7.2)
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1])
    left, right = above.subplots(1, 2, width_ratios=[1.6, 1])
    _draw_parts(left, r)
    largest = abs(r["heads"]).max() or 1.0
    image = maps.draw_map(right, r["heads"], largest)
    right.set(xlabel="head", ylabel="layer", title=f"heads: logit of {_wanted(r)}")
    above.colorbar(image, ax=right, label="logits")
    _draw_places(below, r)
    return figure


def _draw_parts(axes, r):
    """The largest parts, and what 99 % of drawn pairs of tokens stay within."""
    order = np.argsort(-abs(r["parts"]), kind="stable")[:SHOWN]
    x = np.arange(len(order))
    axes.bar(x, r["parts"][order], color=draw.BLUE, label="part of the logit")
    null = r["parts_null"][order]
    style = {"fmt": "none", "ecolor": draw.GREY, "capsize": 3, "label": "99 % of drawn tokens"}
    axes.errorbar(x, np.zeros(len(x)), null, **style)
    axes.set_xticks(x, r["components"][order], rotation=60, ha="right")
    axes.set_ylabel("logits")
    axes.legend()


def _draw_places(figure, r):
    """The heads with the largest parts, by the place that they read."""
    H = r["heads"].shape[1]
    order = np.argsort(-abs(r["heads"]).ravel(), kind="stable")[: SHOWN // 2]
    parts = r["places"].reshape(-1, r["places"].shape[-1])[order][:, -LONG:]
    axes = figure.subplots()
    largest = abs(parts).max() or 1.0
    image = maps.draw_map(axes, parts, largest, written=0)
    axes.set_yticks(range(len(order)), [names.name(i // H, i % H) for i in order.tolist()])
    words = [draw.label(x) for x in r["pieces"][-LONG:]]
    axes.set_xticks(range(len(words)), words, rotation=90)
    axes.set_title("the largest heads, by the place that they read")
    figure.colorbar(image, ax=axes, label="logits")


register(
    attribute,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "A bar far beyond its grey whisker is a component that writes this token and not any "
        "other; word and position are the embeddings of the place itself, b_O, b_U and norms are "
        "biases. The map has all heads, blue for the target and red against it. Below, the heads "
        "with the largest parts: from which place each takes what it writes."
    ),
    published="The sum is that of Elhage et al. 2021, who left out what norms and MLPs do.",
    numbers={
        "largest": "largest part of one head or MLP, as a share of the size of all of theirs",
        "largest_null": "99 % quantile of that share for drawn pairs of tokens",
        "largest_name": "the head or MLP with the largest part",
        "largest_part": "its part, in logits",
        "largest_part_null": "99 % quantile of the size of its part for drawn pairs of tokens",
        "logit": "the logit, or the difference of two",
        "gap": "what the sum of all parts lacks of it, in logits",
    },
    per_head=("heads",),
)

"""Does one component write most of an answer's logit?

A logit, or the difference of two, is the exact sum of what each head, each MLP, the embeddings and
the biases write to the stream; each head's part is the sum over the places that it reads. L layers,
H heads, T places, C components, n drawn pairs of tokens.
"""

from typing import NamedTuple

import numpy as np

from minitx import circuits
from minitx.circuits.texts import read_texts

from ..maths import nulls
from ..measures import asked as questions
from ..measures import heads as names
from ..runner import draw, maps, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED

MOST = 0.5  # share from which one component is said to write most
COMPUTED = "head", "cross_head", "mlp"
HEADS = {"heads": "head", "cross_heads": "cross_head"}  # result: component
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

    prompt: a text; of a masked model with its mask, of an encoder-decoder source=>said ("": random
    words that are said twice)
    target: the token whose logit is asked for, as it stands, blanks too ("": the likeliest one)
    other: the token whose logit is taken off ("": none)
    seed: seed of the drawn tokens, and of random words
    """
    questions.check(model, "attribute")
    asked = _given(model, prompt, target, other, seed)
    text, prefix, target, other = asked
    tokens = (target,) if other is None else (target, other)
    how = {} if prefix is None else {"prefix": prefix}
    table = circuits.logit_attribution(model, text, *tokens, by_place=True, seed=seed, **how)
    result = _by_component(table) | {"logit": table.logit, "gap": table.gap}
    result |= _largest(result)
    pieces = questions.read_by_heads(model, text, prefix)
    for name, part in HEADS.items():
        if (table.component == part).any():
            result[name] = _summed(table, part, table.heads.shape)
            result[f"{name}_places"] = _places(table, part, table.heads.shape, len(pieces[part]))
            result[f"{name}_pieces"] = pieces[part]
    del result["drawn"]
    result["target"] = _piece(model, target)
    return result if other is None else result | {"other": _piece(model, other)}


class Given(NamedTuple):
    """What is asked: the logit of a target, or its difference to another's."""

    text: object  # a text, or its ids; of an encoder-decoder the source
    prefix: object  # what its decoder has said; None in a single stack
    target: object
    other: object  # None: nothing is taken off


def _given(model, prompt, target, other, seed):
    """The text, what was said, the target, and the other token or None."""
    if not prompt:
        if target or other:
            raise ValueError(f"target is {target!r}, but of no prompt; wanted a prompt, too")
        asked = questions.repeats(model, 1, seed)
        prefix = None if asked.prefix is None else asked.prefix[0]
        return Given(asked.clean[0], prefix, *asked.answers[0])
    text, prefix = prompt, None
    if model.encoder is not None:
        text, prefix = questions.said_of(prompt)
    return Given(text, prefix, target or _likeliest(model, text, prefix), other or None)


def _likeliest(model, text, prefix):
    """The id with the largest logit at the last place, or at the mask."""
    place = questions.place(model, text, prefix)
    inputs = read_texts(model, text, prefix)
    return int(inputs.run(model, "logits")["logits"][0, place].argmax())


def _piece(model, token):
    return token if isinstance(token, str) else str(questions.pieces(model, [token])[0])


def _by_component(table):
    """Names of the components, their parts and those of drawn tokens; heads over all places."""
    labels = [_name(*row) for row in zip(table.component, table.layer, table.head)]
    components = np.array([*dict.fromkeys(labels)])
    index = {label: i for i, label in enumerate(components.tolist())}
    rows = [index[label] for label in labels]
    parts, drawn = np.zeros(len(index)), np.zeros((len(index), table.drawn.shape[1]))
    np.add.at(parts, rows, table.logits)
    np.add.at(drawn, rows, table.drawn)
    is_computed = np.zeros(len(index), bool)
    is_computed[rows] = np.isin(table.component, COMPUTED)
    null = np.quantile(abs(drawn), nulls.CHANCE, axis=1)
    result = {"components": components, "parts": parts, "parts_null": null}
    return result | {"drawn": drawn, "computed": is_computed}


def _name(component, layer, head):
    """A row of the table as words: L1H2, cross L1H2, mlp 1, word."""
    if component.endswith("head"):
        prefix = "cross " if component == "cross_head" else ""
        return prefix + names.name(layer, head)
    return component if layer < 0 else f"{component} {layer}"


def _largest(r):
    """The largest part of a head or an MLP as a share of all of theirs; of drawn tokens."""
    computed = np.flatnonzero(r["computed"])
    sizes = abs(np.c_[r["parts"], r["drawn"]][computed])  # [C 1+n]
    sizes = sizes[:, sizes.sum(axis=0) > 0]  # a token may be drawn beside itself
    of_largest = sizes.max(axis=0) / sizes.sum(axis=0)
    i = computed[sizes[:, 0].argmax()]
    result = {"largest": of_largest[0], "largest_name": r["components"][i]}
    result["largest_null"] = np.quantile(of_largest[1:], nulls.CHANCE)
    return result | {"largest_part": r["parts"][i], "largest_part_null": r["parts_null"][i]}


def _summed(table, part, shape):
    """Parts of heads: [L H]."""
    heads = np.zeros(shape)
    mine = table.component == part
    np.add.at(heads, (table.layer[mine], table.head[mine]), table.logits[mine])
    return heads


def _places(table, part, shape, T):
    """Parts of heads by the place that they read: [L H T]."""
    places = np.zeros((*shape, T))
    mine = table.component == part
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
    kinds = [name for name in HEADS if name in r]
    figure = draw.figure(12.5, 3.9 + 3.3 * len(kinds))
    rows = figure.subfigures(1 + len(kinds), 1)
    left, *right = rows[0].subplots(1, 1 + len(kinds), width_ratios=[2.0] + [1.0] * len(kinds))
    _draw_parts(left, r)
    largest = max(abs(r[name]).max() for name in kinds) or 1.0
    for axes, name in zip(right, kinds):
        image = maps.draw_map(axes, r[name], largest)
        axes.set(xlabel="head", ylabel="layer", title=TITLES[name])
    rows[0].colorbar(image, ax=[*right], label="logits")
    left.set_title(f"logit of {_wanted(r)}")
    for row, name in zip(rows[1:], kinds):
        _draw_places(row, r, name)
    return figure


TITLES = {"heads": "heads", "cross_heads": "cross-attention"}


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


def _draw_places(figure, r, name):
    """The heads with the largest parts, by the place that they read."""
    H = r[name].shape[1]
    order = np.argsort(-abs(r[name]).ravel(), kind="stable")[: SHOWN // 2]
    places = r[f"{name}_places"]
    parts = places.reshape(-1, places.shape[-1])[order][:, -LONG:]
    axes = figure.subplots()
    largest = abs(parts).max() or 1.0
    image = maps.draw_map(axes, parts, largest, written=0)
    axes.set_yticks(range(len(order)), [names.name(i // H, i % H) for i in order.tolist()])
    words = [draw.label(x) for x in r[f"{name}_pieces"][-LONG:]]
    axes.set_xticks(range(len(words)), words, rotation=90)
    axes.set_title(f"the largest {TITLES[name]}, by the place that they read")
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
    sides=("both", "encoder"),
)

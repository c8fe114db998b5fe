"""Does one component write most of the logit of the answer token?

A logit, or the difference of two, is the exact sum of what each head, each MLP, the embeddings and
the biases write to the stream; each head's part is the sum over the positions that it reads. L
layers, H heads, T positions, C components, n drawn pairs of tokens.
"""

from typing import Annotated, NamedTuple

import numpy as np

from minitx import circuits
from minitx.circuits.measure import mask_id, places, token_id, with_places
from minitx.circuits.texts import read_texts
from minitx.heads import is_pooled, of_classes

from ..contract import Asks, NotApplicable, Of, Without, options, register
from ..drawing import When, beside, column, draw, row
from ..drawing.maps import Map, Scale, maps
from ..machine.language import filled
from ..maths import nulls
from ..measures import contrast_pairs as questions
from ..measures import heads as names
from ..measures import outputs
from ..running.stream import UNSAVED
from ..texts import corpus, joined

MOST = 0.5  # share from which one component is said to write most
EXACT = 1e-3  # logits that the sum of all parts may lack
HALF = 0.5  # of the logit, that the sum has to give for an answer
COMPUTED = "head", "cross_head", "mlp"
HEADS = {"heads": "head", "cross_heads": "cross_head"}  # result: component
BIASES = {
    "b_U": "the logits",
    "b_O": "attention",
    "cross_b_O": "cross-attention",
    "ln_embed_b": "the embeddings' norm",
    "ln1_b": "first norm",
    "ln_cross_b": "cross-attention's norm",
    "ln2_b": "second norm",
    "ln_final_b": "the final norm",
}
ROOM = 3  # times the largest bar: dashes farther out are cut off, so that bars can be seen
SHOWN = 14  # components, and heads by place
LONG = 40  # places that are drawn
BEGUN = 24  # tokens of the sample, where no text is given
Position = Annotated[
    int,
    options.AtLeast(-1),
    "position of the logits, counted from 0 (-1: where the text asks for a word, or where the "
    "class is likeliest)",
]


def attribute(
    model,
    run=UNSAVED,
    *,
    prompt: options.Said = "",
    target: str = "",
    other: str = "",
    position: Position = -1,
    seed: options.Seed = 0,
):
    """What each head, layer and position adds to a logit, or to a difference of two.

    prompt: a text; of a masked model with its mask, of an encoder-decoder source=>said ("": random
    words that occur twice, or where the model does not guess which comes, the sample's beginning)
    target: the token whose logit is decomposed, verbatim, spaces included, or the label of a class
        ("": the most likely one)
    other: the token, or class, whose logit is subtracted ("": none)
    seed: seed of the drawn tokens, and of random words
    """
    asked = _given(model, prompt, target, other, position, seed)
    text, prefix, target, other, place = asked
    named = [target] if other is None else [target, other]
    how = {"place": place} if prefix is None else {"prefix": prefix, "place": place}
    table = circuits.logit_attribution(model, text, *named, by_place=True, seed=seed, **how)
    if not abs(table.drawn).sum():
        classes = " and ".join(map(repr, outputs.predicted(model, named)))
        raise NotApplicable(f"chance draws other classes, and there is none beside {classes}")
    result = _by_component(table) | {"logit": table.logit, "gap": table.gap}
    result |= _largest(result)
    pieces = questions.read_by_heads(model, text, prefix)
    for name, part in HEADS.items():
        if (table.component == part).any():
            shape = table.heads.shape
            result[name] = _added(table, part, shape, table.layer, table.head)
            by_place = *shape, len(pieces[part])
            of_places = _added(table, part, by_place, table.layer, table.head, table.place)
            result[f"{name}_places"] = of_places
            result[f"{name}_pieces"] = pieces[part]
    result |= _second(model, text)
    del result["drawn"]
    return result | dict(zip(("target", "other"), outputs.predicted(model, named)))


class Given(NamedTuple):
    """What is asked: the logit of a target, or its difference to another's."""

    text: object  # a text, a list of one pair, or ids; of an encoder-decoder the source
    prefix: object  # what its decoder has said; None in a single stack
    target: object
    other: object  # None: nothing is taken off
    place: int  # whose logits they are


def _given(model, prompt, target, other, position, seed):
    """What the options ask; by default the likeliest token, or class, where the text asks for one.

    Raises NotApplicable for a model that has no logits of a text.
    """
    _check(model)
    text, prefix, *tokens = _asked(model, prompt, target, other, seed)
    inputs = read_texts(model, text, prefix)
    y = with_places(inputs.run(model, "logits")["logits"])[0]  # [T V]
    if position >= len(y):
        raise ValueError(f"position is {position}; the logits are at 0 to {len(y) - 1}")
    ids = [None if token is None else token_id(model, token) for token in tokens]
    column = position if position >= 0 else _column(model, inputs, y, ids[0])
    best = int(y[column].argmax())
    return Given(text, prefix, best if ids[0] is None else ids[0], ids[1], column)


def _check(model):
    """Raise NotApplicable for a model without logits of a text."""
    cfg = model.config
    if cfg.task_head == "projection" or cfg.picture is not None:
        kind = "pictures" if cfg.picture is not None else f"texts, with the head {cfg.task_head}"
        raise NotApplicable(f"attribute needs logits of a text; this model reads {kind}")
    if not of_classes(cfg.task_head):
        questions.check(model, "attribute")


def _asked(model, prompt, target, other, seed):
    """The text, what was said, the target or None, and the other token or None."""
    if prompt:
        first, *second = joined.parts(prompt)
        prefix = None  # the decoder of a classifier reads the source
        if model.encoder is not None and not of_classes(model.config.task_head):
            first, prefix = questions.said_of(first)
        text = [(first, *second)] if second else first
        return text, prefix, target or None, other or None
    if target or other:
        raise ValueError(f"target is {target!r}, but there is no prompt; wanted a prompt, too")
    if of_classes(model.config.task_head):
        return corpus.SENTENCE, None, None, None
    asked = questions.repeats(model, 1, seed)
    text, answers = asked.clean[0], asked.answers[0]
    if model.encoder is not None:
        return text, asked.prefix[0], *answers
    if _guesses(model, text, answers[0]) or not corpus.has_tokenizer(model):
        return text, None, *answers
    return _begun(model), None, None, None


def _guesses(model, text, answer):
    """Whether a token is the likeliest where a text asks for one."""
    inputs = read_texts(model, text)
    y = inputs.run(model, "logits")["logits"]
    return int(y[0, places(model, inputs)[0]].argmax()) == answer


def _begun(model):
    """The first tokens of the sample [BEGUN]; of a masked model with the middle one hidden."""
    ids = np.array(corpus.documents(model, "sample", 1, min(BEGUN, model.config.n_ctx)).first()[0])
    if not model.config.causal:
        ids[len(ids) // 2] = mask_id(model.tokenizer)
    return ids


def _second(model, text):
    """Where the second text of a pair begins among the positions read; {} of one text."""
    if not isinstance(text, list):
        return {}
    reader, name = (model, "heads") if model.encoder is None else (model.encoder, "cross_heads")
    return {f"{name}_second": joined.encoding(reader, text[0]).second}


def _column(model, inputs, y, target):
    """Where the text asks for a word; of a class of each token, where its logit is largest."""
    head = model.config.task_head
    if not of_classes(head) or is_pooled(head):
        return int(places(model, inputs)[0])
    return int((y.max(axis=1) if target is None else y[:, target]).argmax())


def _by_component(table):
    """Names of the components, their parts and those of drawn tokens; heads over all positions."""
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
    if not sizes[:, 0].any():
        raise NotApplicable("no head and no MLP adds anything to this logit")
    sizes = sizes[:, sizes.sum(axis=0) > 0]  # a token may be drawn beside itself
    of_largest = sizes.max(axis=0) / sizes.sum(axis=0)
    i = computed[sizes[:, 0].argmax()]
    result = {"largest": of_largest[0], "largest_name": r["components"][i]}
    result["largest_null"] = np.quantile(of_largest[1:], nulls.CHANCE)
    return result | {"largest_part": r["parts"][i], "largest_part_null": r["parts_null"][i]}


def _added(table, part, shape, *where):
    """Parts of heads [shape], those at one place, as columns of the table tell it, added up."""
    heads = np.zeros(shape)
    mine = table.component == part
    np.add.at(heads, tuple(column[mine] for column in where), table.logits[mine])
    return heads


def tokens(r):
    """The target and the other token, if there is one."""
    return " − ".join(f"“{draw.label(str(r[x]))}”" for x in ("target", "other") if x in r)


def largest_parts(r):
    """The three largest parts."""
    return ", ".join(f"{_said(r)[i]} {r['parts'][i]:+.2f}" for i in _order(r)[:3])


def _said(r):
    """The components as a reader knows them: the bias of attention 3, which is b_O 3."""
    parts = [name.partition(" ") for name in r["components"].tolist()]
    said = [BIASES.get(name, name) for name, *_ in parts]
    said = ["bias of " * (new != name) + new for new, (name, *_) in zip(said, parts)]
    return np.array([name + blank + layer for name, (_, blank, layer) in zip(said, parts)])


def _order(r):
    """Numbers of the components that are drawn, those with the largest parts first."""
    return np.argsort(-abs(r["parts"]), kind="stable")[:SHOWN]


def _draw_parts(axes, r):
    """The largest parts, the first at the top, between dashes that drawn tokens reach."""
    order = _order(r)[::-1]
    parts, null, y = r["parts"][order], r["parts_null"][order], np.arange(len(order))
    axes.barh(y, parts, color=draw.BLUE, label="part of the logit")
    style = {"color": "black", "markersize": 9}
    dashes = np.r_[-null, null], np.r_[y, y]
    axes.plot(*dashes, "|", label="null: between dashes 99% of drawn tokens", **style)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_yticks(y, _said(r)[order])
    axes.set_xlabel(filled("logit of {tokens}", tokens=tokens(r)))
    room = ROOM * abs(parts).max()
    if null.max() > room > 0:
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, -room), min(high, room))
        axes.plot([], [], " ", label=f"null beyond the axis: up to {null.max():.1f}")
    axes.legend(**draw.STACKED)


def _kinds(r):
    return [name for name in HEADS if name in r]


def of_places(name):
    """A map of the heads with the largest parts, by the position that they read."""

    def order(r):
        return np.argsort(-abs(r[name]).ravel(), kind="stable")[: SHOWN // 2]

    def parts(r):
        places = r[f"{name}_places"]
        return places.reshape(-1, places.shape[-1])[order(r)][:, -LONG:]

    def labels(r):
        H = r[name].shape[1]
        return [names.name(i // H, i % H) for i in order(r).tolist()]

    def words(r):
        return [draw.label(x) for x in r[f"{name}_pieces"][-LONG:]]

    def second(r):
        before = max(0, len(r[f"{name}_pieces"]) - LONG)
        place = r.get(f"{name}_second", before)
        return place - before if place > before else None

    title = f"the largest {TITLES[name]}, by the position that they read"
    shown = {"columns": words, "has_tokens": True, "second": second, "rows": labels}
    shown |= {"xlabel": "", "ylabel": "", "height": 3.3}
    return maps(Map(parts, title, Scale("logits")), needs=name, **shown)


TITLES = {"heads": "heads", "cross_heads": "cross-attention heads"}


def is_explained(r):
    """Whether the parts sum to at least HALF of the logit: without them nothing is said of it."""
    return abs(r["gap"]) <= HALF * abs(r["logit"])


BY_HEAD = Scale("logits", lambda r: max(abs(r[name]).max() for name in _kinds(r)))

register(
    attribute,
    look="A bar far beyond its dashes is a component that writes this token and not any other; "
    "word and position are the embeddings of the position itself; biases and norms have parts too. "
    "The map has all heads, red for the target and blue against it. Below, the heads with the "
    "largest parts: from which position each takes what it writes.",
    published="The sum is that of Elhage et al. 2021, who left out what norms and MLPs do.",
    numbers="""
        largest: largest contribution of one head or MLP to the logit, as a share of the absolute
            contributions of all
            null: 99% quantile of that share for drawn pairs of tokens
        fact largest_name: the head or MLP with the largest part
        largest_part: its part, in logits
            null: 99% quantile of the size of its part for drawn pairs of tokens
        logit: the logit, or the difference of two
            no null: it is what the parts are parts of
        gap: logit minus the sum of all parts, in logits
            no null: a sum, exact but for rounding
    """,
    answer=Asks(
        "largest contribution of one head or MLP to the logit, as a share of the absolute "
        "contributions of all",
        value="{largest:.0%}, {largest_name}",
        chance="{largest_null:.0%} for drawn tokens",
        rule=Of("largest", enough=MOST),
        without=Without(
            "is_explained",
            "{largest:.0%}, {largest_name}; {gap.abs:.1f} of {logit.abs:.1f} in no part",
        ),
    ),
    says=[
        "The logit of {tokens} is {logit:.2f}; ",
        When(
            "gap.abs < EXACT",
            "the parts sum to it",
            "the parts fall short by {gap:.3f}: this head has a layer of its own, or a cap, which "
            "is not linear",
        ),
        ". The largest parts: {largest_parts}. Of heads and MLPs {largest_name} has most, "
        "{largest_part:+.2f}, which is {largest:.0%} of the size of all their parts (of drawn "
        "tokens: {largest_null:.0%}).",
    ],
    draw=column(
        beside(
            row(_draw_parts),
            maps(*(Map(name, title, BY_HEAD) for name, title in TITLES.items())),
            widths=(1.4, lambda r: len(_kinds(r))),
            height=4.4,
        ),
        *(of_places(name) for name in HEADS),
    ),
    per_head=("heads",),
    sides=("both", "encoder"),
)

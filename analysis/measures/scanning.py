"""One prompt, looked at from every side that needs one pass or a few: what `minitx scan` shows.

The guess and its runners-up, the guess by layer (the logit lens), what each token adds (integrated
gradients beside ablation), where each head looks from the token that asks, and a text with one
word changed for which the guess is another. T tokens, L layers, H heads, G guesses.
"""

from typing import NamedTuple

import numpy as np
import scipy

import minitx

from ..contract import NotApplicable
from ..texts import joined
from . import attributions, heads, losses, outputs

GUESSES = 5
ACTIVE = 0.5  # share of a head's attention from which it looks at something
TRIED = 5  # words that are changed, those that add most first


class Look(NamedTuple):
    """What a head looks at from the token that asks."""

    head: str
    kind: str  # of a token, one of KINDS
    share: float  # of its attention
    chance: float  # the same share of a head that looks at all tokens alike


class Changed(NamedTuple):
    """A text of the same length for which the guess is another."""

    tokens: np.ndarray  # [T]
    place: int  # of the word that was changed
    guess: int


class Scan(NamedTuple):
    """What a model makes of one prompt; `wanted` has the tokens, who asks, and the guess."""

    wanted: attributions.Wanted
    guesses: outputs.Guesses  # [1 G]
    lens: outputs.Guesses  # [L+1 1], before the first layer and after each
    reached: np.ndarray  # [L+1] probability of the guess there
    added: attributions.Attributed  # by token [T], in nats
    looks: list[Look]  # of heads with more than ACTIVE on one kind, the strongest first
    changed: Changed | None


def scan(model, text):
    """A Scan of a text. Raises NotApplicable for a model that does not predict words of one text.

    >>> import minitx
    >>> model = minitx.load("tiny-stories")
    >>> scanned = scan(model, "Mary has the ball. Mary has the")
    >>> model.tokenizer.decode([scanned.wanted.what]), scanned.looks[0].kind
    ('ball', 'the token before')
    """
    check(model)
    asked = joined.encoding(model, text)
    if model.config.task_head == "masked":
        _check_mask(model, asked.ids)
    types = asked.options.get("types")
    wanted = attributions.asked(model, asked.ids, types)
    trace = minitx.run(model, asked.ids, [*outputs.points(model), "pattern"], **asked.options)
    stream = np.stack([trace["resid_pre", 0], *trace.stack("resid_post")])[:, 0, wanted.place]
    last = trace["ln_final"][0, wanted.place][None] if model.config.pre_norm else stream[-1:]
    p = outputs.probabilities(model, last)  # [1 V]
    lens, reached = _by_layer(model, stream[:-1], p, wanted.what)
    added = attributions.of_tokens(model, wanted, model.weights.W_E.mean(axis=0))
    looks = _looks(trace.stack("pattern")[:, 0, :, wanted.place], wanted)
    changed = _changed(model, wanted, added.integrated)
    return Scan(wanted, outputs.likeliest(p, GUESSES), lens, reached, added, looks, changed)


def check(model):
    """Raise NotApplicable for a model that does not predict words of one text."""
    head = model.config.task_head
    if head in ("masked", "causal") and model.encoder is None and model.config.picture is None:
        return
    kind = f"has head {head or 'none'}" if model.config.picture is None else "reads pictures"
    if model.encoder is not None:
        kind = "is an encoder-decoder (minitx decode --steps)"
    raise NotApplicable(
        f"scan asks for one word of one text, of a causal or masked language model; this one {kind}"
    )


def _check_mask(model, ids):
    """Raise ValueError for a text without the word that a masked model is to fill in."""
    mask = losses.mask_token(model.tokenizer)
    if mask not in ids:
        [piece] = model.tokenizer.pieces([mask])
        raise ValueError(f"this masked model fills in {piece}, and the text has none")


def _by_layer(model, stream, p, what):
    """The likeliest token after each layer [L+1 1], and how likely the guess is there [L+1]."""
    rows = [
        outputs.probabilities(model, minitx.final_norm(model, x[None])) for x in stream[:, None]
    ]
    every = np.concatenate([*(row.reshape(1, -1) for row in rows), p])
    return outputs.likeliest(every, 1), every[:, what]


KINDS = (  # of tokens that a head may look at
    "the token before",
    "the token behind",
    "the first token",
    "itself",
    "the same token elsewhere",
    "what followed the same token",
)


def kinds(tokens, place):
    """{one of KINDS: whether each token is that, seen from `place` [T]}."""
    ahead = np.arange(len(tokens)) - place
    same = (tokens == tokens[place]) & (ahead != 0)
    followed = np.append(False, same[:-1]) & (ahead != 0)
    return dict(zip(KINDS, (ahead == -1, ahead == 1, ahead == -place, ahead == 0, same, followed)))


def _looks(pattern, wanted):
    """What each head looks at, from its attention [L H T] at the token that asks."""
    of_kinds = kinds(wanted.tokens, wanted.place)
    seen = (pattern > 0).sum(-1)  # [L H]
    looks = []
    for layer, head in np.ndindex(seen.shape):
        row = pattern[layer, head].astype(np.float64)
        attention = {kind: float(row[is_kind].sum()) for kind, is_kind in of_kinds.items()}
        kind = max(attention, key=attention.get)
        chance = float((of_kinds[kind] & (row > 0)).sum() / seen[layer, head])
        if attention[kind] >= max(ACTIVE, 2 * chance):
            looks.append(Look(heads.name(layer, head), kind, attention[kind], chance))
    return sorted(looks, key=lambda look: -look.share)


def _changed(model, wanted, added):
    """The text with one word replaced by what the model itself would rather expect there."""
    tokens = wanted.tokens
    of_all = scipy.special.softmax(_logits(model, tokens, wanted.types), axis=-1)
    for place in np.argsort(-abs(added), kind="stable")[:TRIED].tolist():
        column = place if model.config.task_head == "masked" else place - 1
        if place == wanted.place or column < 0:
            continue
        others = of_all[column].copy()
        others[tokens[place]] = 0
        swapped = tokens.copy()
        swapped[place] = others.argmax()
        guess = int(_logits(model, swapped, wanted.types)[wanted.place].argmax())
        if guess != wanted.what:
            return Changed(swapped, place, guess)
    return None


def _logits(model, tokens, types):
    """Logits of one text: [T V]."""
    x = minitx.forward(model, tokens, types=types)
    return minitx.logits(model, x)[0].astype(np.float64)

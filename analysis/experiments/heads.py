"""Does a head find what came after a word when it was said before?

Random words are said twice: nothing but the first time tells what comes next. A head that looks at
the word after the first occurrence (induction) can say it. Beside it, what else heads look at on
these texts, and whether they copy what they read. L layers, H heads.
"""

import numpy as np

from minitx import circuits

from ..measures import heads as names
from ..measures.kinds import CLEARLY, COPYING, KINDS, kinds_of
from ..runner import draw, maps, options, verdict
from ..runner.registry import Answer, register
from ..runner.stream import UNSAVED

WRITTEN_HEADS = 5  # of a layer at most, that a number fits beside the next


def heads(
    model,
    run=UNSAVED,
    *,
    texts: options.Count = 16,
    tokens: options.Size = 0,
    seed: options.Seed = 0,
):
    """Attention of every head on random words that are said twice, by what it looks at.

    texts: texts that are drawn
    tokens: words that are said twice (0: 24, or as many as fit)
    seed: seed of the words, and of the shuffled weights of the null
    """
    how = {"n_texts": texts, "n_tokens": tokens or None, "seed": seed}
    scores = circuits.detect_heads(model, kinds_of(model), **how)
    result = {"texts": texts}
    for kind, score in scores.items():
        best = np.unravel_index(score.argmax(), score.shape)
        result[kind] = score.max()
        result[f"{kind}_null"] = score.null.max()
        result[f"{kind}_head"] = names.name(*map(int, best))
        result[f"{kind}_of_heads"] = np.asarray(score)
        result[f"{kind}_of_heads_null"] = score.null
    return result


def says(r):
    """What the numbers show, in plain words."""
    parts = []
    for kind, what in KINDS.items():
        best = f"{r[f'{kind}_head']} gives {r[kind]:.2f} (by chance {r[f'{kind}_null']:.2f})"
        parts.append(f"{best} of its attention to {what}")
    text = "; ".join(parts)
    return f"On {r['texts']} texts of random words that are said twice, {text}."


def answer(r):
    """Yes: the best head gives it a clear part of its attention, more than on other words."""
    best = verdict.of(r, "induction", enough=CLEARLY)
    measure = "attention of the best head to the token after the first occurrence of its own"
    return Answer(best.verdict, measure, f"{best.value:.2f}", f"{best.null:.2f} on other words")


def plot(r):
    """A map of all heads for each kind; below it what chance gives."""
    kinds = [kind for kind in (*KINDS, "copying") if kind in r]
    L, H = r["induction_of_heads"].shape
    written = maps.WRITTEN if H <= WRITTEN_HEADS else 0
    figure = draw.figure(12.5, max(4.5, 1.6 + 0.56 * L))
    rows = figure.subplots(2, len(kinds), sharex=True, sharey=True, squeeze=False)
    for (above, below), kind in zip(rows.T, kinds):
        image = maps.draw_map(above, r[f"{kind}_of_heads"], written=written)
        maps.draw_map(below, r[f"{kind}_of_heads_null"], written=written)
        above.set_title(kind)
        below.set_title("by chance")
        below.set_xlabel("head")
    for row in rows:
        row[0].set_ylabel("layer")
    figure.colorbar(image, ax=rows, label="mean attention; copying: share", shrink=0.6)
    return figure


def described(kind, what):
    """The headline numbers of one kind, in words."""
    chance = "with W_Q, W_K and W_V shuffled"
    if kind in ("induction", "duplicate"):
        chance = "where the second half is other words"
    return {
        kind: f"mean attention to {what}, best head",
        f"{kind}_null": f"mean attention to {what}, best head {chance}",
        f"{kind}_head": f"the head with most attention to {what}",
    }


NUMBERS = {}
for kind, what in KINDS.items():
    NUMBERS |= described(kind, what)
NUMBERS |= {
    "copying": f"{COPYING}, best head",
    "copying_null": f"{COPYING}, best head with W_Q, W_K and W_V shuffled",
    "copying_head": "the head that copies most",
    "texts": "texts of random words",
}

register(
    heads,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "Each map has a row for each layer and a column for each head. Dark blue under induction: "
        "the head finds what came after its token before. It needs a head of an earlier layer that "
        "tells each token what stood before it: look for dark blue under previous. Below, chance: "
        "for induction and duplicate the second half is other words, for the others the weights "
        "that make attention are shuffled."
    ),
    published=(
        "In GPT-2 small induction heads are L5H1, L5H5, L6H9, L7H2 and L7H10, previous-token heads "
        "L2H2 and L4H11 (Olsson et al. 2022; Wang et al. 2022)."
    ),
    numbers=NUMBERS,
    per_head=tuple(f"{kind}_of_heads" for kind in (*KINDS, "copying")),
)

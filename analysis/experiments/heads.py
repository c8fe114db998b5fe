"""Do heads find what followed an earlier occurrence of the same word?

Random words are said twice: nothing but the first time tells what comes next. A head that looks at
the word after the first occurrence (induction) can say it. Beside it, what else heads look at on
these texts, and whether they copy what they read. L layers, H heads.
"""

import numpy as np

from minitx import circuits
from minitx.circuits.repeated import N_TOKENS, room

from ..contract import Asks, Of, options, register
from ..drawing import Bar, bars, figures, row
from ..drawing.maps import Map, Scale, maps
from ..measures import heads as names
from ..measures.kinds import CLEARLY, COPYING, KINDS, kinds_of
from ..running.stream import UNSAVED


def heads(
    model,
    run=UNSAVED,
    *,
    texts: options.Count = 16,
    tokens: options.Size = 0,
    seed: options.Seed = 0,
):
    """Attention of every head on random words that occur twice, by what it looks at.

    texts: texts that are drawn
    tokens: words that occur twice, at most as many as fit (0: 24)
    seed: seed of the words, and of the shuffled weights of the null
    """
    words = min(tokens or N_TOKENS, room(model))
    how = {"n_texts": texts, "n_tokens": words, "seed": seed}
    scores = circuits.detect_heads(model, kinds_of(model), **how)
    result = {"texts": texts, "words": words}
    for kind, given in scores.items():
        score, null = map(np.nan_to_num, (np.asarray(given), given.null))  # a pruned head copies 0
        best = np.unravel_index(score.argmax(), score.shape)
        result[kind] = score.max()
        result[f"{kind}_null"] = null.max()
        result[f"{kind}_head"] = names.name(*map(int, best))
        result[f"{kind}_of_heads"], result[f"{kind}_of_heads_null"] = score, null
    return result


def declared(kind, what):
    """The headline numbers of one kind."""
    chance = "with W_Q, W_K and W_V shuffled"
    if kind in ("induction", "duplicate"):
        chance = "where the second half is other words"
    return f"""
        {kind}: mean attention to {what}, best head
            null: mean attention to {what}, best head {chance}
        fact {kind}_head: the head with most attention to {what}
    """


def best_of(kind, what):
    """What the best head of one kind gives, as a template."""
    gives = f"{{{kind}_head}} gives {{{kind}:.2f}} (by chance {{{kind}_null:.2f}})"
    return f"{gives} of its attention to {what}"


TITLES = {"first": "first token"}  # of maps that are not called as their kind


def of_heads(kinds, ending=""):
    """A map of all heads for each of some kinds."""
    titles = [TITLES.get(kind, kind) for kind in kinds]
    names = [f"{kind}_of_heads{ending}" for kind in kinds]
    each = (Map(*named, ATTENTION) for named in zip(names, titles))
    return maps(*each, heading="by chance" if ending else "")


def kinds(r):
    """The kinds that there are: a head that copies needs the embedding's vocabulary."""
    return [kind for kind in (*KINDS, "copying") if kind in r]


def best(r, ending=""):
    """What the best head of each kind gives."""
    return np.array([r[kind + ending] for kind in kinds(r)])


def best_null(r):
    """What it gives by chance."""
    return best(r, "_null")


def called(r):
    """The kinds, as they are called."""
    return [TITLES.get(kind, kind) for kind in kinds(r)]


ATTENTION = Scale("mean attention", most=1, signed=False)
COPIES = Scale("eigenvalues, Σλ / Σ|λ|", most=1)

register(
    heads,
    look="The bars are the best head of each kind. Each map has a row for each layer and a column "
    "for each head. Dark blue under induction: the head finds what came after its token "
    "before. It needs a head of an earlier layer that tells each token what stood before it: "
    "look for dark blue under previous. By chance: for induction and duplicate the second "
    "half is other words, for the others the weights that make attention are shuffled.",
    published="In GPT-2 small induction heads are L5H1, L5H5, L6H9, L7H2 and L7H10, previous-token "
    "heads L2H2 and L4H11 (Olsson et al. 2022; Wang et al. 2022).",
    numbers=[
        *(declared(kind, what) for kind, what in KINDS.items()),
        f"""
        copying: {COPYING}, best head
            null: {COPYING}, best head with W_Q, W_K and W_V shuffled
        fact copying_head: the head that copies most
        fact texts: texts of random words
        fact words: words of each text that occur twice
        """,
    ],
    answer=Asks(
        "attention of the best head to the token after the first occurrence of its own",
        value="{induction:.2f}",
        chance="{induction_null:.2f} on other words",
        rule=Of("induction", enough=CLEARLY),
    ),
    says=[
        "On {texts} texts of random words that occur twice, ",
        "; ".join(best_of(kind, what) for kind, what in KINDS.items()),
        ".",
    ],
    draw=figures(
        row(
            bars(
                Bar(best, "best head", null=best_null),
                ticks=called,
                null="by chance",
                ylabel="mean attention; of copying Σλ / Σ|λ|",
            ),
            height=3.6,
        ),
        *(of_heads([*KINDS][i : i + 3], end) for i in (0, 3) for end in ("", "_null")),
        maps(
            Map("copying_of_heads", "copying", COPIES),
            Map("copying_of_heads_null", "by chance", COPIES),
            needs="copying_of_heads",
        ),
    ),
    per_head=tuple(f"{kind}_of_heads" for kind in (*KINDS, "copying")),
)

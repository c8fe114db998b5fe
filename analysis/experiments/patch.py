"""Does one head carry an answer, by itself?

Two texts differ in one word, and so in the right answer. What a head computes in the one is put
into the run of the other: what it restores there, and what it takes away the other way round. The
same for the stream before each layer at each place. N pairs, L layers, H heads, T places.
"""

import numpy as np

from minitx import circuits

from ..measures import asked as questions
from ..measures import heads as names
from ..measures import patched
from ..runner import draw, maps, options, verdict
from ..runner.registry import register
from ..runner.stream import UNSAVED

TOGETHER = 16  # pairs in one pass
AT = {"heads": "z", "places": "resid_pre"}  # what is patched, at which point
OF_DECODER = {"heads": "z", "cross": "cross_z", "encoder": "enc_z", "places": "enc_resid_pre"}
HEADS = {"heads": "", "cross": "cross ", "encoder": "encoder "}  # before the name of a head
ENOUGH = 0.5  # share of the answer from which a head carries it
MOST = 40  # places that a map holds


def patch(
    model,
    run=UNSAVED,
    *,
    pairs: options.Pairs = "",
    measure: str = "",
    n_pairs: options.Size = 0,
    seed: options.Seed = 0,
):
    """What every head, and the stream at every place, restores and takes away.

    pairs: clean|corrupt, a file with a pair a line, clean|corrupt|right|wrong, or names ("": random
    words that are said twice); of an encoder-decoder source=>said in place of clean, or dates
    measure: right|wrong, two tokens, where the pairs do not say it
    n_pairs: pairs to read (0: all of a file, 24 of random words)
    seed: seed of the words, of unrelated pairs and of intervals
    """
    asked = questions.asked(model, "patch", pairs, measure, n_pairs, seed)
    parts = dict(AT if model.encoder is None else OF_DECODER)
    if len({len(questions.pieces(model, text)) for text in asked.clean}) > 1:
        del parts["places"]
    size = min(TOGETHER, len(asked.clean))

    def measured(i, group):
        record = {}
        for name, point in parts.items():
            texts = group.clean, group.corrupt, group.answers
            effects = circuits.patch(model, *texts, at=point, seed=seed, **group.options())
            record |= patched.values(name, effects, size)
        return record

    groups = run.gather(measured, asked.groups(size), "pairs", keep=patched.names(parts))
    values = {name: np.concatenate([*x])[: len(asked.clean)] for name, x in groups.items()}
    result = questions.likelier(values["clean"], values["corrupt"])
    for name in parts:
        result |= patched.effects(name, values, seed)
    result |= _best(result)
    for side in ("clean", "corrupt"):
        result[side] = questions.pieces(model, getattr(asked, side)[0])
    return result


def _best(r):
    """The head that restores most and the one that takes away most, with intervals and nulls."""
    best = {}
    for way in ("restored", "lost"):
        parts = _parts(r)
        largest = [r[f"{way}_by_{name}"].max() for name in parts]
        name = parts[int(np.argmax(largest))]
        by_head = r[f"{way}_by_{name}"]
        place = np.unravel_index(by_head.argmax(), by_head.shape)
        best[way] = by_head[place]
        best[f"{way}_interval"] = r[f"{way}_ends_{name}"][(slice(None), *place)]
        best[f"{way}_null"] = max(abs(r[f"{way}_by_{part}_null"]).max() for part in parts)
        best[f"{way}_head"] = HEADS[name] + names.name(*map(int, place))
    return best


def _parts(r):
    """The kinds of heads that were patched."""
    return [name for name in HEADS if f"restored_by_{name}" in r]


def says(r):
    """What the numbers show, in plain words."""
    text = (
        f"Of {r['n_pairs']} pairs {r['told']:.0%} have the right answer likelier in their clean "
        f"text (fair coins: {r['told_null']:.0%}). Put into the corrupt text, "
        f"{r['restored_head']} of the clean one restores {r['restored']:.0%} of the answer, "
        f"most of all heads ({_range(r['restored_interval'])}; of an unrelated pair at most "
        f"{r['restored_null']:.0%}). Put into the clean text, {r['lost_head']} of the corrupt one "
        f"takes away most, {r['lost']:.0%} ({_range(r['lost_interval'])}; {r['lost_null']:.0%})."
    )
    if r["lost"] < r["restored"] / 2:
        text += " That little is lost where much is restored says that others stand in."
    return text


def _range(interval):
    return f"{interval[0]:.0%} to {interval[1]:.0%}"


def answer(r):
    """Yes: one head restores half of the answer, and one takes half away, both beyond chance.

    Undecided where the model does not tell the answers.
    """
    measure = "share of the answer that the best head restores, and that one takes away"
    value = f"{r['restored']:.0%}, {r['lost']:.0%}"
    chance = f"{r['restored_null']:.0%}, {r['lost_null']:.0%} of unrelated pairs"
    ways = [verdict.of(r, way, enough=ENOUGH) for way in ("restored", "lost")]
    return questions.answer(r, verdict.every(*ways), measure, value, chance)


WAYS = {
    "restored": "restored: clean into corrupt",
    "lost": "lost: corrupt into clean",
}


def plot(r):
    """Above what heads restore and take away, below the stream by layer and place."""
    parts = _parts(r)
    has_places = "restored_by_places" in r
    L = max(len(r[f"restored_by_{name}"]) for name in parts)
    height = 1.8 + 0.38 * max(L, 4)
    n = len(parts) + has_places
    figure = draw.figure(12.5, height * n + 0.8 * has_places)
    rows = figure.subfigures(n, 1, squeeze=False)[:, 0]
    drawn = [f"{way}_by_{name}{end}" for way in WAYS for name in parts for end in ("", "_null")]
    largest = max(abs(r[name]).max() for name in drawn)
    for row, name in zip(rows, parts):
        _draw_pair(row, r, name, largest, f"{HEADS[name]}head")
    if has_places:
        of_source = "source: " if len(parts) > 1 else ""
        _draw_pair(rows[-1], r, "places", 1.0, f"{of_source}place")
    return figure


def _draw_pair(figure, r, name, largest, label):
    """Maps of both directions, and beside each other what unrelated pairs give."""
    endings = ("",) if name == "places" else ("", "_null")
    order = [(way, ending) for way in WAYS for ending in endings]
    panels = figure.subplots(1, len(order), sharey=True)
    for axes, (way, ending) in zip(panels, order):
        scores = r[f"{way}_by_{name}{ending}"][:, :MOST]
        image = maps.draw_map(axes, scores, largest, written=40)
        axes.set_xlabel(label)
        axes.set_title("by chance" if ending else WAYS[way])
        if name == "places":
            words = [draw.label(x) for x in r["clean"][:MOST]]
            axes.set_xticks(range(len(words)), words, rotation=90)
    panels[0].set_ylabel("stream before layer" if name == "places" else "layer")
    figure.colorbar(image, ax=[*panels], label="share of the answer")


SHARE = "share of the answer"
register(
    patch,
    draw=plot,
    says=says,
    answer=answer,
    look=(
        "Above, what one head restores where all else is of the corrupt text, and what is lost "
        "where all but this head is of the clean one; beside each, the same with a head of an "
        "unrelated pair. Heads that restore much and lose little have others that stand in for "
        "them. Below, the stream before each layer at each place, under the tokens of the first "
        "clean text: it shows where the answer's way through the model leads."
    ),
    published=(
        "Patching one component at a time began with Vig et al. 2020 and Meng et al. 2022; in "
        "GPT-2 small the heads that name the indirect object are found by it (Wang et al. 2022)."
    ),
    numbers={
        "restored": f"{SHARE} that the best head restores in the corrupt text",
        "restored_null": f"{SHARE} that a head of an unrelated pair restores at most",
        "restored_head": "the head that restores most",
        "restored_interval": f"95 % interval over pairs of the {SHARE} that the best head restores",
        "lost": f"{SHARE} that the head takes away whose corrupt run takes away most",
        "lost_null": f"{SHARE} that a head of an unrelated pair takes away at most",
        "lost_head": "the head that takes away most",
        "lost_interval": f"95 % interval over pairs of the {SHARE} that one head takes away",
    }
    | questions.TOLD,
    labels={"restored_interval": ("from", "to"), "lost_interval": ("from", "to")},
    sides=("both", "encoder"),
    per_head=("restored_by_heads", "lost_by_heads"),
)

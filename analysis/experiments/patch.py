"""Does patching a single head restore the answer?

Two texts differ in one word, and so in the right answer. What a head computes in the one is put
into the run of the other: what it restores there, and what it takes away the other way round. The
same for the stream before each layer at each position. N pairs, L layers, H heads, T positions.
"""

import numpy as np

from minitx import circuits

from ..contract import Asks, Share, options, register
from ..drawing import When, draw, figures
from ..drawing.maps import Map, Scale, maps
from ..measures import contrast_pairs as questions
from ..measures import heads as names
from ..measures import patch_effects
from ..running.stream import UNSAVED

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
    measure: options.Measure = "",
    n_pairs: options.Size = 0,
    seed: options.Seed = 0,
):
    """The share of the answer that each head, and the stream at each position, restores or removes.

    n_pairs: pairs to read (0: all of a file, 24 of random words)
    seed: seed of the words, of unrelated pairs and of intervals
    """
    asked = questions.asked(model, "patch", pairs, measure, n_pairs, seed)
    parts = dict(AT if model.encoder is None else OF_DECODER)
    if len({len(questions.pieces(model, text)) for text in asked.clean}) > 1:
        del parts["places"]

    def patched(name, group):
        texts, point = (group.clean, group.corrupt, group.answers), parts[name]
        return circuits.patch(model, *texts, at=point, seed=seed, **group.options())

    values = patch_effects.by_pair(asked, parts, patched, "pairs", run)
    result = questions.likelier(values["clean"], values["corrupt"])
    for name in parts:
        result |= patch_effects.effects(name, values, seed)
    result |= _best(result)
    of_heads = [name for name in HEADS if name in parts]
    for way in WAYS:
        result[f"{way}_null"] = patch_effects.by_chance(of_heads, values, way, seed)
    letters = None if pairs else {}
    for side in ("clean", "corrupt"):
        result[side] = questions.named(model, getattr(asked, side), letters)
    return result


def _best(r):
    """The head that restores most and the one that takes away most, with intervals."""
    best = {}
    for way in ("restored", "lost"):
        parts = _parts(r)
        largest = [r[f"{way}_by_{name}"].max() for name in parts]
        name = parts[int(np.argmax(largest))]
        by_head = r[f"{way}_by_{name}"]
        place = np.unravel_index(by_head.argmax(), by_head.shape)
        best[way] = by_head[place]
        best[f"{way}_interval"] = r[f"{way}_ends_{name}"][(slice(None), *place)]
        best[f"{way}_head"] = HEADS[name] + names.name(*map(int, place))
    return best


def _parts(r):
    """The kinds of heads that were patched."""
    return [name for name in HEADS if f"restored_by_{name}" in r]


def half_restored(r):
    """Half of what the best head restores."""
    return r["restored"] / 2


def _largest(r):
    """The largest share by head: what is dark in all of their maps."""
    ends = [f"_by_{name}{end}" for name in _parts(r) for end in ("", "_null")]
    return max(abs(r[way + end]).max() for way in WAYS for end in ends)


WAYS = {"restored": "restored: clean into corrupt", "lost": "lost: corrupt into clean"}
BY_HEAD = Scale("share of the answer", _largest)
BY_PLACE = Scale("share of the answer", 1)


def of_heads(name, way):
    """Maps of one direction, and beside it what unrelated pairs give."""
    names = f"{way}_by_{name}", f"{way}_by_{name}_null"
    each = map(Map, names, (WAYS[way], "by chance"), (BY_HEAD, BY_HEAD))
    return maps(*each, xlabel=f"{HEADS[name]}head", needs=names[0])


def of_places(way):
    """The map of one direction by layer and position, as many as fit."""
    return Map(lambda r: r[f"{way}_by_places"][:, :MOST], WAYS[way], BY_PLACE)


def words(r):
    """The tokens of the first clean text, or letters for drawn ones, as many as fit."""
    return [draw.label(x) for x in r["clean"][:MOST]]


register(
    patch,
    look="The first figures have the share of the answer that one head restores when it is patched "
    "from the clean into the corrupt run, and the share that is lost when it is patched from "
    "the corrupt into the clean run; beside each, the same with a head of an unrelated pair. "
    "Where a head restores much and loses little, other heads can take over its work. The "
    "last has the stream before each layer at each position, under the tokens of the first clean "
    "text, or a letter for each drawn word: it shows the path of the answer through the model.",
    published="Patching one component at a time began with Vig et al. 2020 and Meng et al. 2022; "
    "in GPT-2 small the heads that name the indirect object are found by it (Wang et al. 2022).",
    numbers=[
        """
        restored: share of the answer that the best head restores in the corrupt text
            null: share that the best head of unrelated pairs restores in 99 of 100 draws
        fact restored_head: the head that restores most
        fact restored_interval by from, to: 95% interval over pairs of the share of the answer that
            the best head restores
        lost: share of the answer that the head takes away whose corrupt run takes away most
            null: share that the best head of unrelated pairs takes away in 99 of 100 draws
        fact lost_head: the head that takes away most
        fact lost_interval by from, to: 95% interval over pairs of the share of the answer that one
            head takes away
        """,
        questions.TOLD,
    ],
    answer=Asks(
        "share of the answer that patching restores with the best head, and removes with one head",
        value="{restored:.0%}, {lost:.0%}",
        chance="{restored_null:.0%}, {lost_null:.0%} of unrelated pairs",
        rule=questions.if_told(Share("restored", enough=ENOUGH), Share("lost", enough=ENOUGH)),
    ),
    says=[
        questions.TELLS,
        "Put into the corrupt text, {restored_head} of the clean one restores {restored:.0%} of "
        "the answer, most of all heads ({restored_interval:to .0%}; of unrelated pairs up to "
        "{restored_null:.0%}). Put into the clean text, {lost_head} of the corrupt one takes away "
        "most, {lost:.0%} ({lost_interval:to .0%}; {lost_null:.0%}).",
        When(
            "lost < half_restored",
            " Where much is restored and little is lost, other heads can take over.",
        ),
    ],
    draw=figures(
        *(of_heads(name, way) for name in HEADS for way in WAYS),
        maps(
            *(of_places(way) for way in WAYS),
            xlabel=[When("restored_by_encoder", "source: "), "position"],
            ylabel="stream before layer",
            columns=words,
            has_tokens=True,
            needs="restored_by_places",
        ),
    ),
    sides=("both", "encoder"),
    per_head=("restored_by_heads", "lost_by_heads"),
)

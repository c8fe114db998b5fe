"""The atlas of a model: queries and keys of hundreds of sentences in every head.

`compute` gives an Atlas (records.py), which pages/atlas.py draws: an encoder or a decoder has one
Space; an encoder-decoder three, of the encoder, of the decoder, and of the decoder's queries with
the keys of the source. Scale and planes, flags and nearness are of all sentences; where they have
more tokens than can be drawn, sentences are drawn with a seed.

Order: how, an atlas, one of its spaces, what is said of it.
"""

from typing import NamedTuple

import numpy as np

from ..measures import decoder_texts, joint_fit
from ..running import stream
from ..texts import formats
from . import flags, heads, projections, sentences, shapes, trust
from .records import Atlas, Flag, Lie, Misleads, Moves, Points, Space, Strongest

__all__ = [
    "Atlas",
    "Flag",
    "How",
    "Lie",
    "Misleads",
    "Moves",
    "Points",
    "Space",
    "Strongest",
    "compute",
]

OF_CHANCE = 48  # sentences whose points are compared with those of shuffled weights


class How(NamedTuple):
    """What an atlas reads, and how it is drawn."""

    sentences: int | None = None  # 0: all; None: 200, or as many as there are
    tokens: int = 0  # of a sentence, at most; 0: 64, or as many as the model reads
    distance: str = "cosine"  # as for joint-grid
    scope: str = "head"  # that shares a scale: head, layer or model
    projection: str = "pca"  # beside it tsne, tsne3, umap, umap3, joined by commas
    word_classes: str = ""  # file with a word, a tab and its class in each line
    seed: int = 0


USUAL = How()


def compute(model, text, how=USUAL, run=stream.UNSAVED, name="model"):
    """The Atlas of a model on a text.

    run: where states are kept, so that an interrupted computation goes on. Raises ValueError for a
    text with fewer sentences than are wanted, before any work.

    >>> import minitx
    >>> atlas = compute(minitx.load("tiny-roberta"), "sample", How(sentences=3))
    >>> atlas.sides[0].name, atlas.sides[0].xy["pca"].shape[:2], len(atlas.sentences)
    ('encoder', (4, 4), 3)
    """
    extras = projections.checked(how.projection)
    classes = sentences.classes_of(how.word_classes)
    reader = model if model.encoder is None else model.encoder
    documents = sentences.sentences(reader, text, how.sentences, how.tokens)
    numbers = sentences.drawn(documents, how.seed, sentences.DRAWN)
    sides = []
    for side in sides_of(model, documents, run):
        part = heads.Part(run, side.name)
        sides.append(space(side, tables_of(side, numbers, classes), numbers, how, extras, part))
    drawn = [documents[i] for i in numbers]
    table = sentences.Words(reader, documents).table(drawn, classes)
    tokens, titles = sentences.tokens_of(table), sentences.titles(reader, drawn)
    said = sampled(documents, numbers, how.seed), None
    stated = settings_of(name, text, documents, how, sides)
    return Atlas(name, [each for each, _ in sides], tokens, titles, *said, stated)


class Side(NamedTuple):
    """A stack, or cross-attention, and what it reads."""

    name: str
    model: object
    documents: list
    cross: bool
    key_model: object  # whose tokens the keys are


def sides_of(model, documents, run):
    """The Sides of a model: one of a single stack, three of an encoder-decoder."""
    if model.encoder is None:
        name = "decoder" if model.config.causal else "encoder"
        return [Side(name, model, documents, False, model)]
    said = said_of(model, documents, run)
    encoder = Side("encoder", model.encoder, documents, False, model.encoder)
    decoder = Side("decoder", model, said, False, model)
    return [encoder, decoder, decoder._replace(name="cross", cross=True, key_model=model.encoder)]


def said_of(model, documents, run):
    """What an encoder-decoder says of each source, its likeliest token at each step."""

    def measure(_, source):
        inputs = decoder_texts.greedy(model, source).inputs
        longest = decoder_texts.LONGEST + 2
        return {"ids": np.pad(inputs, (0, longest - len(inputs))), "n": np.array(len(inputs))}

    kept = run.gather(measure, documents, "sentences: what is said", ("ids", "n"))
    rows = [ids[:n] for ids, n in zip(kept["ids"], kept["n"].tolist())]
    return [decoder_texts.Spoken(source, ids, ids) for source, ids in zip(documents, rows)]


def tables_of(side, numbers, classes):
    """The Points tables of the queries and of the keys that are drawn."""

    def table(model, all_ids):
        words = sentences.Words(model, all_ids)
        return words.table([all_ids[i] for i in numbers], classes)

    queries = table(side.model, [heads.queries_of(x) for x in side.documents])
    if not side.cross:
        return queries, queries
    return queries, table(side.key_model, [heads.keys_of(x, True) for x in side.documents])


def space(side, tables, numbers, how, extras, run):
    """One Space, and its Fit."""
    settings = joint_fit.How(how.distance, how.scope, cross=side.cross)
    width = max(heads.DEPTH, projections.INNER if extras else 0)
    fitted = heads.fit(side.model, side.documents, settings, how.seed, run, width)
    drawn = [side.documents[i] for i in numbers]
    kept = heads.points(side.model, drawn, settings, fitted, run, how.seed)
    sums = counts(side, kept, numbers, how, (settings, fitted, run))
    x = heads.joined(kept, drawn, side.cross)
    xy = {"pca": x[..., :2], "pca3": x[..., : heads.DEPTH]}
    xy |= {name: projections.points(name, x, how.seed, run) for name in extras}
    chance = of_chance(side, fitted, how, run)
    of_points = flags.of_shapes(shapes.measured(x, *tables), chance)
    flagged = sorted([*flags.of_counts(sums), *of_points])
    fields = {"queries": tables[0], "keys": tables[1], "xy": xy}
    fields |= {"norms": norms(kept, drawn, side.cross), "flags": flagged}
    fields["strongest"] = strongest(kept, drawn, side.cross)
    others = nearness(side, tables, xy, fields["strongest"], how.seed)
    fields |= {"lie": flags.lie(sums, others), "moves": moves(fitted)}
    return Space(*size_of(side), **fields), fitted


def nearness(side, tables, xy, strongest, seed):
    """How far each projection but the plane can be trusted: {name: [2 L H]}."""
    of = [table.sentence for table in tables], strongest.index[..., 0]
    is_causal = side.model.config.causal and not side.cross
    names = [name for name in xy if name != "pca"]
    return {name: trust.of_projection(xy[name], *of, is_causal, seed) for name in names}


def moves(fitted):
    """The Moves of a Fit."""
    names = ("correlation_before", "correlation")
    correlations = [fitted.facts[name + end] for end in ("", "_null") for name in names]
    return Moves(fitted.moves["c"], *correlations)


def counts(side, kept, numbers, how, fit):
    """What is counted of all sentences: of those that are drawn, and of the others."""
    settings, fitted, run = fit
    sums = {name: x for name, x in kept.items() if name not in heads.KEPT}
    others = [x for i, x in enumerate(side.documents) if i not in {*numbers}]
    if not others:
        return sums
    further = heads.counts(side.model, others, settings, fitted, run, how.seed + 1)
    return {name: x + further[name] for name, x in sums.items()}


def size_of(side):
    """The first fields of a Space: its name, L, H, d and the labels of its layers."""
    cfg = side.model.config
    layers = [str(layer) for layer in range(cfg.n_layers)]
    return side.name, cfg.n_layers, cfg.n_heads, cfg.d_head, layers


def norms(kept, documents, cross):
    """Lengths of the queries [L H n] and of the keys [L H m]."""
    of_keys = [len(heads.keys_of(x, cross)) for x in documents]
    of_queries = [len(heads.queries_of(x)) for x in documents]
    queries = heads.unpadded(kept["q_norm"], of_queries)
    keys = heads.unpadded(kept["k_norm"], of_keys)
    return {"query": queries, "key": keys}


def strongest(kept, documents, cross):
    """The strongest keys of each query, as numbers of all keys."""
    lengths = [len(heads.queries_of(x)) for x in documents]
    starts = np.cumsum([0, *(len(heads.keys_of(x, cross)) for x in documents[:-1])])
    index = heads.unpadded(kept["index"], lengths).astype(np.int32)
    first = np.repeat(starts, lengths)[:, None]
    weight = heads.unpadded(kept["weight"], lengths)
    return Strongest(np.where(index < 0, -1, index + first).astype(np.int32), weight)


def of_chance(side, fitted, how, run):
    """What the shapes of points measure in heads whose weights are shuffled: {kind: [2 L H]}.

    Their scales are those of the model's heads, their means and planes their own.
    """
    settings = joint_fit.How(how.distance, how.scope, cross=side.cross)
    n = min(OF_CHANCE, len(side.documents))
    documents = side.documents[:n]
    tables = tables_of(side, range(n), sentences.classes_of(""))
    parts = []
    for number in range(flags.n_shuffles(side.model)):
        model = flags.shuffled(side.model, (how.seed, number))
        part = heads.Part(run, f"weights shuffled, {number}")
        of_part = heads.fit_like(model, documents, settings, fitted.facts["best"], part)
        points = heads.coordinates(model, documents, settings, of_part, part)
        parts.append(shapes.measured(points, *tables))
    return {kind: np.concatenate([x[kind] for x in parts], axis=1) for kind in shapes.KINDS}


def sampled(documents, numbers, seed):
    """How many points of a head are drawn, of how many, in words."""
    total = 2 * sum(map(len, documents))
    drawn = 2 * sum(len(documents[i]) for i in numbers)
    if len(numbers) == len(documents):
        return drawn, total, f"All {len(documents):,} sentences are drawn."
    words = (
        f"Of {len(documents):,} sentences {len(numbers):,} are drawn, by seed {seed}; scales, "
        "planes, flags of attention and nearness are of all."
    )
    return drawn, total, words


def settings_of(name, text, documents, how, sides):
    """What the page's footer says."""
    stated = {"model": name, "text": formats.shown(text)}
    stated |= {"sentences": len(documents), "tokens": sum(map(len, documents))}
    stated |= {"distance": how.distance, "scope": how.scope}
    stated |= {"projection": how.projection, "seed": how.seed}
    for side, fitted in sides:
        stated[f"{side.name}: products and distances"] = correlated(fitted.facts)
    return stated


def correlated(facts):
    """Mean correlation of products and distances over the heads, and of turned queries."""
    before = facts["correlation_before"].mean()
    after = facts["correlation"].mean()
    by_chance = facts["correlation_before_null"].mean(), facts["correlation_null"].mean()
    return (
        f"correlation {before:.2f} before queries and keys are moved and scaled, {after:.2f} after "
        f"(queries turned at random: {by_chance[0]:.2f} and {by_chance[1]:.2f})"
    )

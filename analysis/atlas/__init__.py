"""The atlas of a model: queries and keys of hundreds of sentences in every head.

`compute` gives an Atlas (records.py), which pages/atlas.py draws: an encoder or a decoder has one
Space; an encoder-decoder three, of the encoder, of the decoder, and of the decoder's queries with
the keys of the source. Scale and planes, flags and nearness are of all sentences; where they have
more tokens than can be drawn, sentences are drawn with a seed.
"""

from typing import NamedTuple

import numpy as np

from ..drawing.draw import signs
from ..machine.language import filled, translated
from ..measures import decoder_texts, joint_fit
from ..running import stream
from ..texts import formats
from . import flags, heads, patches, projections, sentences, shapes, trust
from .records import Atlas, Flag, Lie, Misleads, Moves, Pictures, Points, Space, Strongest

__all__ = [
    "Atlas",
    "Flag",
    "How",
    "Lie",
    "Misleads",
    "Moves",
    "Pictures",
    "Points",
    "Space",
    "Strongest",
    "compute",
]

CORRELATED = (
    "correlation {before:.2f} before queries and keys are moved and scaled, {after:.2f} after "
    "(queries rotated at random: {turned:.2f} and {turned_after:.2f})"
)
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
    if model.config.picture is None:
        texts = sentences.texts(model, text, how.sentences, how.tokens)
    else:
        texts = patches.album(model, text, how.sentences, how.seed)
    numbers = sentences.drawn(ids_of(texts.documents), how.seed, sentences.DRAWN)
    sides = []
    for side in sides_of(model, texts, run):
        part = heads.Part(run, side.name)
        sides.append(space(side, tables_of(side, numbers, classes), numbers, how, extras, part))
    said = sampled(texts, numbers, how.seed), None, settings_of(name, text, texts, how, sides)
    return Atlas(name, [each for each, _ in sides], *texts.shown(numbers), *said)


def ids_of(documents):
    """The ids of documents, or the numbers of patches."""
    return [*map(heads.queries_of, documents)]


class Side(NamedTuple):
    """A stack, or cross-attention, and what it reads."""

    name: str
    model: object
    documents: list
    cross: bool
    key_model: object  # whose tokens the keys are
    album: patches.Album | None = None  # of a model of pictures

    @property
    def noun(self):
        """What a document is."""
        return "sentence" if self.album is None else self.album.noun

    def settings(self, how):
        """What joint_fit reads of it: all tokens of a text, the patches of a picture."""
        among = slice(None) if self.album is None else self.documents[0].grid.patches
        return joint_fit.How(how.distance, how.scope, cross=self.cross, among=among)


def sides_of(model, texts, run):
    """The Sides of a model: one of a single stack, three of an encoder-decoder."""
    documents = texts.documents
    if model.config.picture is not None:
        return [Side("encoder", model, documents, False, model, texts)]
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
    if side.album is not None:
        return (side.album.table(numbers),) * 2

    def table(model, all_ids):
        words = sentences.Words(model, all_ids)
        return words.table([all_ids[i] for i in numbers], classes)

    queries = table(side.model, [heads.queries_of(x) for x in side.documents])
    if not side.cross:
        return queries, queries
    return queries, table(side.key_model, [heads.keys_of(x, True) for x in side.documents])


def space(side, tables, numbers, how, extras, run):
    """One Space, and its Fit."""
    settings = side.settings(how)
    width = max(heads.DEPTH, projections.INNER if extras else 0)
    fitted = heads.fit(side.model, side.documents, settings, how.seed, run, width)
    drawn = [side.documents[i] for i in numbers]
    kept = heads.points(side.model, drawn, settings, fitted, run, how.seed)
    sums = counts(side, kept, numbers, how, (settings, fitted, run))
    x = heads.joined(kept, drawn, side.cross)
    xy = {"pca": x[..., :2], "pca3": x[..., : heads.DEPTH]}
    xy |= {name: projections.points(name, x, how.seed, run) for name in extras}
    chance = of_chance(side, fitted, how, run)
    of_points = flags.of_shapes(shapes.measured(x, *tables, kinds_of(side)), chance)
    flagged = sorted([*flags.of_counts(sums, words_of(side)), *of_points])
    fields = {"queries": tables[0], "keys": tables[1], "xy": xy}
    fields |= {"norms": norms(kept, drawn, side.cross), "flags": flagged}
    fields["strongest"] = strongest(kept, drawn, side.cross)
    others = nearness(side, tables, xy, fields["strongest"], how.seed)
    fields |= {"lie": flags.lie(sums, others, side.noun), "moves": moves(fitted)}
    if side.album is not None:
        fields["pictures"] = side.album.pictures(numbers)
    return Space(*size_of(side), **fields), fitted


def kinds_of(side):
    """The shapes that are measured."""
    return shapes.KINDS if side.album is None else shapes.of_grid(side.documents[0].grid.columns)


def words_of(side):
    """Each offset that is counted, in words."""
    if side.album is None:
        return [*map(flags.where, heads.OFFSETS)]
    return [*map(patches.where, patches.OFFSETS)]


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
    of_queries, of_keys = heads.lengths(documents, cross)
    queries = heads.unpadded(kept["q_norm"], of_queries)
    return {"query": queries, "key": heads.unpadded(kept["k_norm"], of_keys)}


def strongest(kept, documents, cross):
    """The strongest keys of each query, as numbers of all keys."""
    lengths, of_keys = heads.lengths(documents, cross)
    starts = np.cumsum([0, *of_keys[:-1]])
    index = heads.unpadded(kept["index"], lengths).astype(np.int32)
    first = np.repeat(starts, lengths)[:, None]
    weight = heads.unpadded(kept["weight"], lengths)
    return Strongest(np.where(index < 0, -1, index + first).astype(np.int32), weight)


def of_chance(side, fitted, how, run):
    """What the shapes of points measure in heads whose weights are shuffled: {kind: [2 L H]}.

    Their scales are those of the model's heads, their means and planes their own.
    """
    settings = side.settings(how)
    n = min(OF_CHANCE, len(side.documents))
    documents = side.documents[:n]
    tables = tables_of(side, range(n), sentences.classes_of(""))
    parts = []
    for number in range(flags.n_shuffles(side.model)):
        model = flags.shuffled(side.model, (how.seed, number))
        part = heads.Part(run, f"weights shuffled, {number}")
        of_part = heads.fit_like(model, documents, settings, fitted.facts["best"], part)
        points = heads.coordinates(model, documents, settings, of_part, part)
        parts.append(shapes.measured(points, *tables, kinds_of(side)))
    return {kind: np.concatenate([x[kind] for x in parts], axis=1) for kind in parts[0]}


def sampled(texts, numbers, seed):
    """How many points of a head are drawn, of how many, in words."""
    lengths = [*map(len, ids_of(texts.documents))]
    points = 2 * sum(lengths[i] for i in numbers), 2 * sum(lengths)
    n = len(lengths)
    if len(numbers) == n:
        return *points, filled(sentences.ALL[texts.noun], n=f"{n:,}")
    return *points, filled(
        sentences.SOME[texts.noun], n=f"{n:,}", drawn=f"{len(numbers):,}", seed=seed
    )


def settings_of(name, text, texts, how, sides):
    """What the page's footer says."""
    documents = texts.documents
    stated = {"model": name, texts.source: formats.shown(text)}
    stated |= {f"{texts.noun}s": len(documents), texts.token: sum(map(len, ids_of(documents)))}
    stated |= {"distance": how.distance, "scope": how.scope}
    stated |= {"projection": how.projection, "seed": how.seed}
    for side, fitted in sides:
        about = f"{side.name}: {translated('products and distances')}"
        stated[about] = correlated(fitted.facts)
    return stated


def correlated(facts):
    """Mean correlation of products and distances over the heads, and of turned queries."""
    names = {"before": "correlation_before", "after": "correlation"}
    names |= {"turned": "correlation_before_null", "turned_after": "correlation_null"}
    return signs(filled(CORRELATED, **{name: facts[key].mean() for name, key in names.items()}))

"""The joint space of every head of a model, from any number of documents, in a few passes.

A pass holds one layer of a document at a time. Its maths is in maths/joint.py.

N documents, L layers, H heads, T tokens (or words) of one document, d width of a head, C scales, O
orders of the keys (their own, then shuffled). Axis "stage": before, as the model has queries and
keys, and after, moved and scaled. Axis "space": the full space of a head, and the plane of its
first two principal components.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np

from minitx import forward, head_weights
from minitx.model import CROSS

from ..maths import joint, stats
from ..running import stream
from ..texts import corpus, joined, words
from . import inputs

LONGEST = 64  # tokens of a document unless asked otherwise
SHUFFLES = 99  # by chance, a model's share is above all of them once in 100
STAGES = "before", "after"
BINS = 40  # of a side of the small picture of a head
REACH = 2.5  # of that picture, in standard deviations along the first axis
NEARER = 0.05  # of mean 1/rank: unmoved keys gain up to 0.04 by Euclidean distance (power.py)
GAINS = {
    "closer": lambda gain: gain >= NEARER,
    "farther": lambda gain: gain <= -NEARER,
    "same": lambda gain: abs(gain) < NEARER,
}
# what tells one head from another
PER_HEAD = (
    "c",
    *(
        name + stage
        for name in ("correlation", "spearman", "mrr", "first", "mrr_plane", "first_plane")
        for stage in ("_before", "")
    ),
    "correlation_moved",
)


# the options that the experiments on this space share
Distance = Annotated[Literal["cosine", "euclidean"], "distance between a query and a key"]
Scope = Annotated[
    Literal["head", "layer", "model"],
    "what shares one scale c: each head its own, all heads of a layer, or all of the model",
]
Products = Annotated[
    Literal["centred", "plain"],
    "centred: less the mean over the keys that a query sees, as attention has them; plain: as they "
    "are",
]
Weighted = Annotated[bool, "weight the correlation by attention"]


class How(NamedTuple):
    """What a fit correlates, and who shares a scale."""

    distance: Distance = "cosine"
    scope: Scope = "head"
    products: Products = "centred"
    weighted: bool = False
    words: bool = False
    cross: bool = False  # queries of a decoder, keys of its source: documents are Spoken
    among: slice = slice(None)  # tokens whose queries and keys are read; attention is among them


def documents(model, text, n, tokens):
    """The first n documents of a text as they are, cut to `tokens`.

    0 tokens: 64, or the model's longest if that is less.
    """
    longest = model.config.n_ctx
    if tokens > longest:
        raise ValueError(f"--tokens {tokens}: this model reads at most {longest}")
    return corpus.texts(model, text, n, tokens or min(LONGEST, longest))


class Layer(NamedTuple):
    """One layer on one document, in float64."""

    index: int
    q: np.ndarray  # [H T d]
    k: np.ndarray  # [H T d], of cross-attention [H S d]: so for every second T below
    pattern: np.ndarray  # [H T T]
    seen: np.ndarray  # keys that a query sees [T T]
    scale: float  # factor on the products


def map_layers(model, document, use, settings):
    """use(layer) -> {name: array} for every layer of one document: {name: [L ...]}.

    A layer is used as soon as it exists, so that no two have to be kept. document: ids [T], or what
    an encoder-decoder says of a source (decoder_texts.py).
    """
    inputs.check_uncapped(model)
    text = joined.of(getattr(document, "inputs", document))  # of two texts with their types
    word = None
    if settings.words:
        word = words.numbers(text.ids, model.tokenizer.decode, text.second)
    prefix = CROSS if settings.cross else ""
    results, kept = [], {}

    def tap(name, x, layer=None):
        kept[name] = x
        if name == f"{prefix}pattern":
            parts = [kept[prefix + part][0] for part in ("q", "k", "pattern")]
            results.append(use(_layer(model, layer, parts, word, settings)))
        return x

    source = getattr(document, "source", None)
    forward(model, text.ids, source=source, hook=tap, **text.options)
    return stats.stacked(results)


def layers(model, document, settings):
    """All layers of one document at once, in order."""
    kept = []

    def keep(layer):
        kept.append(layer)
        return {}

    map_layers(model, document, keep, settings)
    return kept


def _layer(model, index, parts, word, settings):
    """Queries, keys and attention of one layer as a Layer, merged into words if these are given."""
    among = settings.among
    q, k, pattern = (x.astype(np.float64) for x in parts)
    k = head_weights.for_each_head(k, len(q))
    if word is not None:
        pattern, q, k = words.merged(pattern, q, k, word)
    if among != slice(None):
        q, k, pattern = q[:, among], k[:, among], pattern[:, among, among]
        pattern = pattern / pattern.sum(axis=-1, keepdims=True)
    seen = np.ones(pattern.shape[1:], bool)
    if model.config.causal and not settings.cross:
        seen = np.tril(seen)
    return Layer(index, q, k, pattern, seen, model.config.attn_scale(index))


def fit(model, documents, settings, seed=0, shuffles=SHUFFLES, run=stream.UNSAVED):
    """The joint space of every head: c [L H], a [L H d], the planes, and what `measures` lists.

    documents: of token ids, read four times: for the means, for c, for the planes, for nearness.
    The null shows what arithmetic alone gives: the same queries, rotated at random, with their own
    c and a.
    """
    moves, null, best, curves = moved(model, documents, settings, seed, run)
    planes = _planes(model, documents, settings, moves, run)
    near = _near(model, documents, settings, moves, planes, null, seed, shuffles, run)
    result = moves | planes
    result["kept"] = best["own"] == 0  # candidate 0 changes nothing
    result["density"] = near["density"]
    # queries, and what is fitted to them: a move and a scale of each head
    result |= {"n_rows": near["queries"][0], "n_features": model.config.d_head + 1}
    return result | correlations(curves, best) | measures(near)


def moved(model, documents, settings, seed=0, run=stream.UNSAVED):
    """c and a of every head; the same of turned queries; the candidates taken; correlations."""
    means = means_of(model, documents, settings, run)
    turn = turns(seed, means[0].shape)
    turned_means = [(means[0][..., None, :] @ turn)[..., 0, :], means[1]]
    curves = _scanned(model, documents, settings, means, turned_means, turn, run)
    best = {name: joint.best(curve, settings.scope) for name, curve in curves.items()}
    moves = joint.transform_of(best["own"], means, settings.distance)
    null = joint.transform_of(best["turned"], turned_means, settings.distance)
    return moves, null | {"turn": turn}, best, curves


def _sums(model, documents, use, settings, what, run, keep=()):
    """use(layer) -> {name: array} of every layer, summed over documents: {name: [L ...]}."""

    def measure(_, document):
        return map_layers(model, document, use, settings)

    return run.gather(measure, documents, what, keep)


def means_of(model, documents, settings, run):
    """Mean of the queries and of the keys of each head: [L H d] twice."""

    def use(layer):
        sums = {"q": layer.q.sum(axis=1), "k": layer.k.sum(axis=1)}
        return sums | {"tokens_q": layer.q.shape[1], "tokens_k": layer.k.shape[1]}

    sums = _sums(model, documents, use, settings, "documents: means", run)
    return [sums[name] / sums[f"tokens_{name}"][:, None, None] for name in "qk"]


def turns(seed, shape):
    """A random rotation for each head: [L H d d]."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal((*shape, shape[-1])))
    return Q * np.sign(np.diagonal(R, axis1=-2, axis2=-1))[..., None, :]


def _turned(layer, turn):
    """A layer with rotated queries, and the attention that they would give."""
    q = layer.q @ turn[layer.index]
    return layer._replace(q=q, pattern=joint.attention(q, layer.k, layer.scale, layer.seen))


def _scanned(model, documents, settings, means, turned_means, turn, run):
    """Correlations [1 + C L H] for the model's own queries, and for the rotated queries."""

    def scan(layer, means):
        q_and_k = [mean[layer.index] for mean in means]
        weights = layer.pattern if settings.weighted else layer.seen
        distance, products = settings.distance, settings.products
        return joint.scan(layer.q, layer.k, q_and_k, weights, layer.seen, distance, products)

    def use(layer):
        return {"own": scan(layer, means), "turned": scan(_turned(layer, turn), turned_means)}

    sums = _sums(model, documents, use, settings, "documents: scales", run)
    return {name: np.moveaxis(joint.correlation(x), 0, 1) for name, x in sums.items()}


def stages(layer, moves):
    """Queries and keys of a layer before and after: two pairs of [H T d]."""
    c, a = moves["c"][layer.index], moves["a"][layer.index]
    return (layer.q, layer.k), joint.normalised(layer.q, layer.k, c, a)


def _planes(model, documents, settings, moves, run):
    """The plane of each head before and after, from all queries and keys together."""
    drawn = joint.DISTANCES[settings.distance].drawn
    kept = ("attention", "products")

    def use(layer):
        pairs = [[*map(drawn, pair)] for pair in stages(layer, moves)]
        x = np.array([np.concatenate(pair, axis=1) for pair in pairs])  # [2 H 2T d]
        sums = {"sum": x.sum(axis=2), "square": x.swapaxes(2, 3) @ x, "n": x.shape[2]}
        c, a = moves["c"][layer.index], moves["a"][layer.index]
        changes = joint.changes(layer.q, layer.k, c, a, layer.scale, layer.seen)
        return sums | dict(zip(kept, changes))  # which should not change

    sums = _sums(model, documents, use, settings, "documents: planes", run, kept)
    n = sums["n"][:, None, None, None]
    centre = sums["sum"] / n  # [L 2 H d]
    covariance = sums["square"] / n[..., None] - centre[..., :, None] * centre[..., None, :]
    result = {"centre": centre, "plane": joint.plane(covariance)}
    result["attention_change"] = sums["attention"].max(axis=0)
    result["products_change"] = sums["products"].max(axis=0)
    return result | _variances(covariance)


def _variances(covariance):
    """Spread along the first axis [L 2 H]; the plane's share of the variance [2 L H]."""
    variance = np.linalg.eigvalsh(covariance)
    total = np.maximum(variance.sum(axis=-1), joint.TINY)
    explained = variance[..., -2:].sum(axis=-1) / total
    spread = np.sqrt(np.maximum(variance[..., -1], 0))
    return {"spread": spread, "explained": np.moveaxis(explained, 1, 0)}


def plane_points(layer, settings, moves, planes):
    """Positions of queries and keys in the plane, before and after: two pairs of [H T 2]."""
    drawn = joint.DISTANCES[settings.distance].drawn
    points = []
    for stage, pair in enumerate(stages(layer, moves)):
        centre = planes["centre"][layer.index, stage][:, None]
        plane = planes["plane"][layer.index, stage]
        points.append([(drawn(x) - centre) @ plane for x in pair])
    return points


def distances(layer, settings, moves, planes):
    """Distances in the full space and in the plane: [2 stages][2 spaces] of [H T T]."""
    pairs = zip(stages(layer, moves), plane_points(layer, settings, moves, planes))
    return [
        [joint.distances(*full, settings.distance), joint.distances(*flat, "euclidean")]
        for full, flat in pairs
    ]


def _near(model, documents, settings, moves, planes, null, seed, shuffles, run):
    """Sums over the queries of how near their strongest keys are, and pictures of the heads.

    near, turned: sums of 1/rank and of rank 1. queries: how many were counted. own_ranks,
    turned_ranks: Spearman's correlations, text by text. density: a small picture of each head.
    """

    def use(layer, rng):
        turned = _turned(layer, null["turn"])
        full = [joint.distances(*pair, settings.distance) for pair in stages(turned, null)]
        far = distances(layer, settings, moves, planes)
        sums = {"near": _nearness(layer, far, shuffles, rng)}
        sums["turned"] = _nearness(turned, [full], 0, rng)[0, 0]
        sums["own_ranks"] = _rank_correlations(layer, moves, settings)
        sums["turned_ranks"] = _rank_correlations(turned, null, settings)
        sums["texts"] = 1
        sums["queries"] = (layer.seen.sum(axis=1) > 1).sum()
        sums["density"] = _pictures(layer, settings, moves, planes)
        return sums

    def measure(index, document):
        rng = np.random.default_rng((seed, index))
        return map_layers(model, document, lambda layer: use(layer, rng), settings)

    return run.gather(measure, documents, "documents: nearness")


def _rank_correlations(layer, moves, settings):
    """Spearman's correlation of products and distances of one layer, before and after: [2 H]."""
    correlations = []
    for q, k in stages(layer, moves):
        products = joint.PRODUCTS[settings.products].of(q @ k.swapaxes(-1, -2), layer.seen)
        distances = joint.distances(q, k, settings.distance)
        correlations.append(joint.rank_correlation(products, distances, layer.seen))
    return np.array(correlations)


def _nearness(layer, far, shuffles, rng):
    """Sums of one layer, strongest keys first and then in each shuffle: [O ... 2 H].

    far: rows of distances [H T T].
    """
    strongest = layer.pattern.argmax(axis=-1)  # [H T]
    orders = joint.shuffled_keys(layer.seen, shuffles, rng)
    shuffled = orders[:, np.arange(len(layer.seen)), strongest]
    keys = np.concatenate([strongest[None], shuffled])  # [O H T]

    def near(d):
        return joint.nearness(joint.ranks(d, layer.seen)[None], keys, layer.seen)

    sums = [[near(d) for d in row] for row in far]  # [2 O H] each
    return np.moveaxis(np.array(sums), 3, 0)


def _pictures(layer, settings, moves, planes):
    """Density of queries and keys of one layer: [2 stages 2 H BINS BINS]."""
    wide = REACH * planes["spread"][layer.index]
    points = plane_points(layer, settings, moves, planes)
    return np.array([[density(x, wide[stage]) for x in pair] for stage, pair in enumerate(points)])


def density(points, wide):
    """How many points lie in each cell of the square from -wide to wide.

    The cells at the edge also count the points beyond it. [H T 2], [H] -> [H BINS BINS], first axis
    downwards from the top.
    """
    cells = np.floor((points / np.maximum(wide, joint.TINY)[:, None, None] + 1) / 2 * BINS)
    x, y = np.moveaxis(cells.clip(0, BINS - 1).astype(int), -1, 0)
    number = (np.arange(len(points))[:, None] * BINS + BINS - 1 - y) * BINS + x
    return np.bincount(number.ravel(), minlength=len(points) * BINS * BINS).reshape(-1, BINS, BINS)


def correlations(curves, best):
    """Correlation of each head [L H] as it is, moved at c = 1, and at its own c.

    curves: {"own": of the model's own queries, "turned": of the turned ones}, [1 + C L H]; best:
    the candidates taken from them, [L H].
    """
    result = {}
    unscaled = 1 + np.searchsorted(joint.SCALES, 1)
    for name, end in (("own", ""), ("turned", "_null")):
        curve = curves[name]
        result["correlation_before" + end] = curve[0]
        result["correlation_moved" + end] = curve[unscaled]
        result["correlation" + end] = np.take_along_axis(curve, best[name][None], 0)[0]
    return result


def measures(near):
    """Nearness of the strongest keys of each head [L H] with its nulls, and shares of the heads.

    Also Spearman's correlations of products and distances, means over the texts.
    """
    queries = near["queries"][:, None]
    means = np.moveaxis(near["near"], 0, 4) / queries  # [O 2 stages 2 spaces 2 L H]
    turned = np.moveaxis(near["turned"], 0, 2) / queries  # [2 stages 2 L H]
    result = {}
    for space, end in enumerate(("", "_plane")):
        for stage, before in enumerate(("_before", "")):
            for number, name in enumerate(("mrr", "first")):
                mean = means[:, stage, space, number]  # [O L H]
                result[name + end + before] = mean[0]
                result[name + end + before + "_null"] = mean[1:].mean(axis=0)
        gain = means[:, 1, space, 0] - means[:, 0, space, 0]  # of 1/rank: [O L H]
        for name, holds in GAINS.items():
            share = holds(gain).mean(axis=(-2, -1))
            result[name + end] = share[0]
            result[name + end + "_null"] = share[1:].max()
    for name, null in (("own", ""), ("turned", "_null")):
        by_stage = near[f"{name}_ranks"] / near["texts"][:, None, None]  # [L 2 H]
        result["spearman_before" + null], result["spearman" + null] = by_stage.swapaxes(0, 1)
    result["mrr_before_turned_null"] = turned[0, 0]
    result["mrr_turned_null"] = turned[1, 0]
    return result

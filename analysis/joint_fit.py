"""The joint space of every head of a model, from any number of documents: a few passes, each with one layer at a time.

N documents, L layers, H heads, T tokens (or words) of one document, d width of a head, O orders of the keys (their
own, then shuffled), C scales. Order: options, one layer of one document, the four passes, what they say of each head.
"""

import itertools
from typing import NamedTuple

import numpy as np

from minitx import forward

from . import corpus, joint, stream, words

LONGEST = 64   # tokens of a document unless asked otherwise
SHUFFLES = 19  # more than all of them: by chance once in 20
STAGES = "before", "after"
BINS = 40      # of a side of the small picture of a head
REACH = 2.5    # of it, in standard deviations along the first axis
GAINS = {"closer": lambda gain: gain > joint.SAME, "farther": lambda gain: gain < -joint.SAME,
         "same": lambda gain: abs(gain) <= joint.SAME}  # of mean 1/rank
PER_HEAD = ("c", *(name + stage for name in ("correlation", "mrr", "first", "mrr_plane", "first_plane")
                   for stage in ("_before", "")), "correlation_moved")  # what tells one head from another


class How(NamedTuple):
    """What is made as large as it can be, and for whom."""
    distance: str = "cosine"
    scope: str = "head"
    products: str = "centred"
    weighted: bool = False
    words: bool = False


def how(distance, scope, products, weighted, words=0):
    """The options, checked: ValueError for what there is not."""
    for name, value, there in (("distance", distance, joint.DISTANCES), ("scope", scope, joint.SCOPES),
                               ("products", products, joint.PRODUCTS)):
        if value not in there:
            raise ValueError(f"--{name} {value!r}: there are {', '.join(there)}")
    corpus.within("weighted", weighted, 0, 1)
    corpus.within("words", words, 0, 1)
    return How(distance, scope, products, bool(weighted), bool(words))


def documents(model, text, n, tokens):
    """The first n documents of a text as they are, cut to `tokens` (0: 64, or the model's longest if that is less)."""
    longest = model.config.n_ctx
    if tokens > longest:
        raise ValueError(f"--tokens {tokens}: this model reads at most {longest}")
    return corpus.texts(model, text, n, tokens or min(LONGEST, longest))


class Layer(NamedTuple):
    """Queries and keys [H T d] in float64, attention [H T T], keys that a query sees [T T], factor on the products."""
    index: int
    q: np.ndarray
    k: np.ndarray
    pattern: np.ndarray
    seen: np.ndarray
    scale: float


def each(model, document, use, how):
    """use(layer) -> {name: array} for every layer of one document, as soon as it exists -> {name: [L ...]}."""
    word = words.numbers(document, model.tokenizer.decode) if how.words else None
    found, kept = [], {}

    def tap(name, x, layer=None):
        kept[name] = x
        if name == "pattern":
            found.append(use(_layer(model, layer, kept, word)))
        return x
    forward(model, document, at=tap)
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def _layer(model, index, kept, word):
    """What was kept of one layer as a Layer, merged into words where these are given."""
    q, k, pattern = (kept[name][0].astype(np.float64) for name in ("q", "k", "pattern"))
    if word is not None:
        pattern, q, k = words.merged(pattern, q, k, word)
    seen = np.ones(pattern.shape[1:], bool)
    return Layer(index, q, k, pattern, np.tril(seen) if model.config.causal else seen, model.config.attn_scale(index))


def fit(model, read, how, seed=0, shuffles=SHUFFLES):
    """All that is found about every head: c [L H], a [L H d], the planes, and what `measures` lists.

    read: documents of token ids, gone through four times: for the means, for c, for the planes, for nearness. The null
    of what arithmetic alone gives are the same queries turned at random, with a c and a of their own.
    """
    means = _means(model, read, how)
    turn = _turns(seed, means[0].shape)
    turned = [(means[0][..., None, :] @ turn)[..., 0, :], means[1]]
    found = _scanned(model, read, how, means, turned, turn)
    numbers = {name: joint.best(found[name], how.scope) for name in found}
    moves, null = (joint.chosen(numbers[name], two, how.distance) for name, two in (("own", means), ("turned", turned)))
    planes = _planes(model, read, how, moves)
    near = _near(model, read, how, moves, planes, null | {"turn": turn}, seed, shuffles)
    return moves | {"kept": numbers["own"] == 0, "density": near["density"]} | planes | \
        _correlations(found, numbers) | measures(near)


def _means(model, read, how):
    """Mean of the queries and of the keys of each head: [L H d] twice."""
    def measure(_, document):
        return each(model, document, lambda at: {
            "q": at.q.sum(axis=1), "k": at.k.sum(axis=1), "tokens": at.q.shape[1]}, how)
    sums = stream.gather(measure, read, "documents: means")
    return [sums[name] / sums["tokens"][:, None, None] for name in "qk"]


def _scanned(model, read, how, means, turned, turn):
    """Correlations [1 + C L H] of the model's own queries, and of the same ones turned at random."""
    def sums(at, means):
        both, weights = [mean[at.index] for mean in means], at.pattern if how.weighted else at.seen
        return joint.scan(at.q, at.k, both, weights, at.seen, how.distance, how.products)
    found = stream.gather(lambda _, document: each(model, document, lambda at: {
        "own": sums(at, means), "turned": sums(_turned(at, turn), turned)}, how), read, "documents: scales")
    return {name: np.moveaxis(joint.correlation(x), 0, 1) for name, x in found.items()}


def _turns(seed, shape):
    """A random rotation for each head: [L H d d]."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).standard_normal((*shape, shape[-1])))
    return Q * np.sign(np.diagonal(R, axis1=-2, axis2=-1))[..., None, :]


def _turned(at, turn):
    """A layer with its queries turned, and the attention that they would give."""
    q = at.q @ turn[at.index]
    return at._replace(q=q, pattern=joint.attention(q, at.k, at.scale, at.seen))


def views(at, how, moves):
    """Queries and keys of a layer before and after: two pairs of [H T d]."""
    return (at.q, at.k), joint.normalised(at.q, at.k, moves["c"][at.index], moves["a"][at.index])


def _planes(model, read, how, moves):
    """The plane of each head before and after, from all queries and keys together; and what did not change."""
    drawn = joint.DISTANCES[how.distance].drawn

    def use(at):
        x = np.array([np.concatenate([*map(drawn, pair)], axis=1) for pair in views(at, how, moves)])  # [2 H 2T d]
        attention, products = joint.changes(at.q, at.k, moves["c"][at.index], moves["a"][at.index], at.scale, at.seen)
        return {"sum": x.sum(axis=2), "square": x.swapaxes(2, 3) @ x, "n": x.shape[2],
                "attention": attention, "products": products}
    sums = stream.gather(lambda _, document: each(model, document, use, how), read, "documents: planes",
                         keep=("attention", "products"))
    n = sums["n"][:, None, None, None]
    centre = sums["sum"] / n  # [L 2 H d]
    covariance = sums["square"] / n[..., None] - centre[..., :, None] * centre[..., None, :]
    variance = np.linalg.eigvalsh(covariance)
    total = np.maximum(variance.sum(axis=-1), joint.TINY)
    return {"centre": centre, "plane": joint.plane(covariance), "spread": np.sqrt(np.maximum(variance[..., -1], 0)),
            "explained": np.moveaxis(variance[..., -2:].sum(axis=-1) / total, 1, 0),
            "attention_change": sums["attention"].max(axis=0), "products_change": sums["products"].max(axis=0)}


def flat(at, how, moves, planes):
    """Places of queries and keys in the plane, before and after: two pairs of [H T 2]."""
    drawn = joint.DISTANCES[how.distance].drawn
    return [[(drawn(x) - planes["centre"][at.index, stage][:, None]) @ planes["plane"][at.index, stage] for x in pair]
            for stage, pair in enumerate(views(at, how, moves))]


def apart(at, how, moves, planes):
    """Distances in the full space and in the plane, before and after: [2 stages][2 spaces] of [H T T]."""
    return [[joint.distances(*full, how.distance), joint.distances(*two, "euclidean")]
            for full, two in zip(views(at, how, moves), flat(at, how, moves, planes))]


def _near(model, read, how, moves, planes, null, seed, shuffles):
    """Sums of 1/rank and of rank 1 of the strongest keys, queries counted, and a small picture of each head."""
    def use(at, rng):
        """The same of one layer of one document."""
        turned = _turned(at, null["turn"])
        full = [joint.distances(*pair, how.distance) for pair in views(turned, how, null)]
        return {"near": _nearness(at, apart(at, how, moves, planes), shuffles, rng),
                "turned": _nearness(turned, [full], 0, rng)[0, 0], "queries": (at.seen.sum(axis=1) > 1).sum(),
                "density": _pictures(at, how, moves, planes)}

    def measure(index, document):
        rng = np.random.default_rng((seed, index))
        return each(model, document, lambda at: use(at, rng), how)
    return stream.gather(measure, read, "documents: nearness")


def _nearness(at, far, shuffles, rng):
    """Sums of one layer of one document, strongest keys first and then in each shuffle: [O ... 2 H]."""
    strongest = at.pattern.argmax(axis=-1)
    keys = [strongest, *(deal[np.arange(len(deal)), strongest] for deal in joint.dealt(at.seen, shuffles, rng))]
    ranks = [[joint.ranks(d, at.seen) for d in row] for row in far]
    return np.array([[[joint.nearness(one, key, at.seen) for one in row] for row in ranks] for key in keys])


def _pictures(at, how, moves, planes):
    """Density of queries and keys of one layer of one document: [2 stages 2 H BINS BINS]."""
    wide = REACH * planes["spread"][at.index]
    return np.array([[density(x, wide[stage]) for x in pair]
                     for stage, pair in enumerate(flat(at, how, moves, planes))])


def density(points, wide):
    """How many points lie in each cell of the square from -wide to wide, the edge taking what lies beyond: [H T 2],
    [H] -> [H BINS BINS], first axis downwards from the top."""
    cells = np.floor((points / np.maximum(wide, joint.TINY)[:, None, None] + 1) / 2 * BINS)
    x, y = np.moveaxis(cells.clip(0, BINS - 1).astype(int), -1, 0)
    number = (np.arange(len(points))[:, None] * BINS + BINS - 1 - y) * BINS + x
    return np.bincount(number.ravel(), minlength=len(points) * BINS * BINS).reshape(-1, BINS, BINS)


def _correlations(found, numbers):
    """Correlation of each head [L H] as it is, moved at c = 1, and as chosen; of turned queries too."""
    values = {}
    for name, end in (("own", ""), ("turned", "_null")):
        values["correlation_before" + end] = found[name][0]
        values["correlation_moved" + end] = found[name][1 + np.searchsorted(joint.SCALES, 1)]
        values["correlation" + end] = np.take_along_axis(found[name], numbers[name][None], 0)[0]
    return values


def measures(near):
    """Nearness of the strongest keys of each head [L H], before and after, with its nulls, and shares of the heads."""
    means = np.moveaxis(near["near"], 0, 4) / near["queries"][:, None]  # [O 2 stages 2 spaces 2 L H]
    turned = np.moveaxis(near["turned"], 0, 2) / near["queries"][:, None]  # [2 stages 2 L H]
    found = {}
    for j, place in enumerate(("", "_plane")):
        for (m, name), (i, stage) in itertools.product(enumerate(("mrr", "first")), enumerate(("_before", ""))):
            found[name + place + stage] = means[0, i, j, m]
            found[name + place + stage + "_null"] = means[1:, i, j, m].mean(axis=0)
        gain = means[:, 1, j, 0] - means[:, 0, j, 0]  # [O L H]
        for name, of in GAINS.items():
            share = of(gain).mean(axis=(-2, -1))
            found[name + place], found[name + place + "_null"] = share[0], share[1:].max()
    return found | {"mrr_before_turned_null": turned[0, 0], "mrr_turned_null": turned[1, 0]}

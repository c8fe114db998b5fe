"""A fabricated Atlas for tests of its page: seeded points, in which some heads have a shape.

Head L0H0 is a spiral by position, L0H1 has each token's points in a heap of its own; the others are
clouds. Its records have the fields of those that a model gives.
"""

import numpy as np

from minitx.analysis.atlas import (
    Atlas,
    Flag,
    Lie,
    Misleads,
    Moves,
    Pictures,
    Points,
    Space,
    Strongest,
)

TYPES = "special", "word start", "continuation", "number", "punctuation"
WORDS = "[CLS]|[SEP]| the| of| and|##ing| cat| river| 1912|,|.".split("|")
WORDS += [f" word{n}" for n in range(40)]


def atlas(n_sentences=6, length=9, L=2, H=3, name="fabricated", seed=0, beside=None, words=WORDS):
    """An Atlas of one self-attention space; words: its vocabulary."""
    draw = np.random.default_rng(seed)
    points = table(draw, n_sentences, length, words)
    side = space(draw, "encoder", L, H, points, points)
    n, tokens = 2 * len(points.token), texts(points)
    titles = [" ".join(own) for own in tokens]
    settings = {"seed": seed, "projection": "PCA", "scope": "head"}
    sampled = n, n, "All points are drawn."
    return Atlas(name, [side], tokens, titles, sampled, beside, settings)


def with_three_spaces():
    """An Atlas of an encoder-decoder: queries and keys of `cross` are of different texts."""
    draw = np.random.default_rng(1)
    source, target = (table(draw, 4, length, WORDS) for length in (7, 9))
    tables = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    sides = [space(draw, name, 2, 2, *pair) for name, pair in tables.items()]
    return atlas(4, 7)._replace(sides=sides, sentences=texts(source))


def of_pictures(word="left"):
    """An Atlas of the patches of pictures; word: their class, and what they are called."""
    draw = np.random.default_rng(2)
    n_pictures, rows, columns = 5, 3, 4
    n = rows * columns
    names = [f"{row},{column}" for row, column in np.ndindex(rows, columns)]
    picture, patch = np.divmod(np.arange(n_pictures * n), n)
    same = np.zeros(len(patch), int)
    numbers = picture, patch, patch, same, same + n, same + 1 / n, picture % 2 - 1
    points = Points(*numbers, names, ["patch"], [word])
    pixels = draw.integers(0, 256, (n_pictures, 2 * rows, 2 * columns, 3), dtype=np.uint8)
    side = space(draw, "encoder", 2, 2, points, points)
    up = Flag(0, 1, "offset", 0.7, 0.1, "gives 70% of its attention to the patch 1 up")
    side = side._replace(pictures=Pictures(rows, columns, pixels), flags=[up])
    settings = {"seed": 0, "projection": "PCA", "scope": "head"}
    sampled = 2 * len(patch), 2 * len(patch), "All pictures are drawn."
    titles = [f"{word} {k}" for k in range(n_pictures)]
    return Atlas("of pictures", [side], [names] * n_pictures, titles, sampled, None, settings)


def hostile_atlas(word):
    """Two Atlases in which every text is `word`."""
    fabricated = atlas(3, 6, 1, 2, name=word, words=[word, f"a {word}"])
    side = fabricated.sides[0]
    texts_ = {"types": [word] * len(TYPES), "word_classes": [word] * 3}
    points = side.queries._replace(**texts_)
    flag = Flag(0, 0, word, 0.5, 0.1, word)
    lie = side.lie._replace(misleads=Misleads(0, 1, word))
    side = side._replace(queries=points, keys=points, flags=[flag], lie=lie, layers=[word])
    fabricated = fabricated._replace(sides=[side], titles=[word] * 3, settings={word: word})
    fabricated = fabricated._replace(sampled=(1, 2, word))
    return fabricated._replace(beside=fabricated._replace(name=f"{word} too"))


def table(draw, n_sentences, length, words):
    """The Points of sentences of one length."""
    n = n_sentences * length
    token = draw.integers(len(words), size=n)
    share = np.bincount(token, minlength=len(words)) / n
    sentence, position = np.divmod(np.arange(n), length)
    kind, word_class = np.minimum(token % 7, len(TYPES) - 1), token % 4 - 1
    names = list(words), list(TYPES), ["noun", "verb", "other"]
    numbers = kind, np.full(n, length), share[token], word_class
    return Points(sentence, position, token, *numbers, *names)


def texts(points):
    names = [points.vocabulary[t] for t in points.token]
    sentences = range(points.sentence.max() + 1)
    return [[names[i] for i in np.flatnonzero(points.sentence == s)] for s in sentences]


def space(draw, name, L, H, queries, keys):
    """A Space with PCA in two and three dimensions."""
    n, m = len(queries.token), len(keys.token)
    xyz = places(draw, L, H, queries, keys)
    norms = {"query": draw.lognormal(size=(L, H, n)), "key": draw.lognormal(size=(L, H, m))}
    layers = [str(layer) for layer in range(L)]
    planes = {"pca": xyz[..., :2], "pca3": xyz}
    keys_of = strongest(draw, L, H, queries, keys)
    own = flags(L, H), lie(draw, L, H), Moves(*draw.uniform(-0.9, -0.1, (5, L, H)))
    return Space(name, L, H, 8, layers, queries, keys, norms, planes, keys_of, *own)


def places(draw, L, H, queries, keys):
    """Points of all heads: clouds, in the first a spiral, in the second a heap for each token."""
    n, m = len(queries.token), len(keys.token)
    xyz = draw.standard_normal((L, H, n + m, 3))
    xyz[:, :, n:] += 1
    angle = np.concatenate([queries.position, keys.position]) / 2
    token = np.concatenate([queries.token, keys.token])
    spiral = (angle * [np.cos(angle), np.sin(angle)]).T
    xyz[0, 0, :, :2] = spiral + 0.05 * xyz[0, 0, :, :2]
    heaps = 3 * np.array([token % 7, token // 7]).T
    xyz[0, 1 % H, :, :2] = heaps + 0.2 * xyz[0, 1 % H, :, :2]
    return (xyz * draw.uniform(0.5, 40, (L, H, 1, 1))).astype(np.float32)


def flags(L, H):
    """Two heads that exceed chance, one of them twice."""
    spiral = Flag(0, 0, "spiral", 0.93, 0.21, "points lie on a spiral by position")
    offset = Flag(0, 0, "offset", 0.71, 0.12, "looks one back")
    return [spiral, offset, Flag(0, 1 % H, "same token", 0.55, 0.04, "looks at the same token")]


def lie(draw, L, H):
    """Shares of near keys, and the last head as the one that misleads."""
    words = f"In L{L - 1}H{H - 1} 12% of them are near in the plane and 80% in the whole space."
    near = draw.uniform(0.1, 0.9, (4, L, H))
    deep = draw.uniform(0.1, 0.9, (2, L, H))
    return Lie(*near, Misleads(L - 1, H - 1, words), {"pca3": deep})


def strongest(draw, L, H, queries, keys):
    """Five keys of a query's own sentence, the strongest first; fewer in a shorter one."""
    n = len(queries.token)
    index, weight = np.full((L, H, n, 5), -1), np.zeros((L, H, n, 5), np.float16)
    for s in np.unique(queries.sentence):
        rows, own = np.flatnonzero(queries.sentence == s), np.flatnonzero(keys.sentence == s)
        most = min(5, len(own))
        order = draw.random((L, H, len(rows), len(own))).argsort(axis=-1)
        index[:, :, rows, :most] = own[order[..., :most]]
        weights = draw.dirichlet(np.full(len(own), 0.3), size=(L, H, len(rows)))
        weight[:, :, rows, :most] = np.sort(weights)[..., ::-1][..., :most]
    return Strongest(index, weight)

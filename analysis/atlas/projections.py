"""t-SNE and UMAP of every head, from its first principal components: once, seeded, resumable."""

import numpy as np

from ..maths import embed_2d

INNER = 16  # principal components that they start from
EXTRAS = tuple(name for name in embed_2d.METHODS if name != "pca")


def checked(names):
    """The names of projections beside PCA, joined by commas, as a list.

    Raises ValueError for a name that is not known, or whose package is missing.

    >>> checked("pca")
    []
    """
    extras = [name for name in names.split(",") if name != "pca"]
    for name in extras:
        if name not in EXTRAS:
            raise ValueError(f"--projection {name!r}; there are: {', '.join(embed_2d.METHODS)}")
        embed_2d.method(name)
    return list(dict.fromkeys(extras))


def points(name, x, seed, run):
    """Points [L H n C] of all heads in two columns each: [L H n 2]."""
    L, H = x.shape[:2]
    reduce = embed_2d.method(name)

    def measure(_, place):
        return {"xy": np.asarray(reduce(x[tuple(place)], seed), np.float32)}

    heads = [np.array(place) for place in np.ndindex(L, H)]
    xy = run.gather(measure, heads, f"heads: {name}", ("xy",))["xy"]
    return xy.reshape(L, H, *xy.shape[1:])

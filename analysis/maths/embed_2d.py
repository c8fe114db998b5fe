"""Many columns drawn as two or three: principal components, or what keeps neighbours together.

Order: the methods, the table, the choice.
"""

import importlib
import warnings


def _tsne(x, seed, n=2):
    """t-SNE (van der Maaten and Hinton 2008), started from principal components: [m d] -> [m n]."""
    from sklearn.manifold import TSNE

    perplexity = min(30, (len(x) - 1) / 3)
    return TSNE(n, perplexity=perplexity, init="pca", random_state=seed).fit_transform(x)


def _umap(x, seed, n=2):
    """UMAP (McInnes, Healy and Melville 2018): [m d] -> [m n]."""
    from umap import UMAP

    neighbours = min(15, len(x) - 1)
    with warnings.catch_warnings():
        # UMAP warns at every call that a seed leaves it one thread only
        warnings.filterwarnings("ignore", "n_jobs value")
        return UMAP(n_components=n, n_neighbors=neighbours, random_state=seed).fit_transform(x)


# name -> (function of [m d], a seed and how many columns are wanted (2), None for principal
# components; the module it needs; the package to install)
METHODS = {
    "pca": (None, None, ""),
    "tsne": (_tsne, "sklearn.manifold", "scikit-learn"),
    "umap": (_umap, "umap", "umap-learn"),
}


def method(name, option="method"):
    """The function behind a name, None for principal components.

    option: that names it. Raises ValueError if its package is missing.

    Principal components need no package:

    >>> method("pca") is None
    True
    """
    reduce, module, package = METHODS[name]
    if module is None:
        return reduce
    try:
        importlib.import_module(module)
    except ImportError as error:
        text = f"--{option} {name} needs {package} ({error}): pip install 'minitx[{name}]'"
        raise ValueError(text) from None
    return reduce

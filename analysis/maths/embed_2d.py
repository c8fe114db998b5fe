"""Many columns drawn as two: principal components, or a package that keeps neighbours together.

Order: the methods, the table, the choice.
"""

import importlib
import warnings


def _tsne(x, seed):
    """t-SNE (van der Maaten and Hinton 2008), started from principal components: [n d] -> [n 2]."""
    from sklearn.manifold import TSNE

    perplexity = min(30, (len(x) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=seed).fit_transform(x)


def _umap(x, seed):
    """UMAP (McInnes, Healy and Melville 2018): [n d] -> [n 2]."""
    from umap import UMAP

    neighbours = min(15, len(x) - 1)
    with warnings.catch_warnings():
        # UMAP warns at every call that a seed leaves it one thread only
        warnings.filterwarnings("ignore", "n_jobs value")
        return UMAP(n_components=2, n_neighbors=neighbours, random_state=seed).fit_transform(x)


# name -> (function of [n d] and a seed, None for principal components; the module it needs; the
# package to install)
METHODS = {
    "pca": (None, None, ""),
    "tsne": (_tsne, "sklearn.manifold", "scikit-learn"),
    "umap": (_umap, "umap", "umap-learn"),
}


def method(name):
    """The function behind a name, None for principal components.

    Raises ValueError if its package is missing.

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
        text = f"--method {name} needs {package} ({error}): pip install 'minitx[{name}]'"
        raise ValueError(text) from None
    return reduce

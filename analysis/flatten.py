"""Many columns drawn as two: by principal components, or by one of two packages that keep neighbours together.

Order: the methods, the table, its check.
"""

import importlib
import warnings


def _tsne(x, seed):
    """t-SNE (van der Maaten and Hinton 2008), started from principal components: [n d] -> [n 2]."""
    from sklearn.manifold import TSNE
    return TSNE(2, perplexity=min(30, (len(x) - 1) / 3), init="pca", random_state=seed).fit_transform(x)


def _umap(x, seed):
    """UMAP (McInnes, Healy and Melville 2018): [n d] -> [n 2]."""
    from umap import UMAP
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_jobs value")  # a seed allows no threads, which it says every time
        return UMAP(n_components=2, n_neighbors=min(15, len(x) - 1), random_state=seed).fit_transform(x)


# name -> (function of [n d] and a seed, None for principal components; its module; the package to install)
METHODS = {"pca": (None, None, ""), "tsne": (_tsne, "sklearn.manifold", "scikit-learn"),
           "umap": (_umap, "umap", "umap-learn")}


def method(name):
    """The function behind a name; ValueError if there is none, or if its package is missing."""
    if name not in METHODS:
        raise ValueError(f"--method {name!r}: there are {', '.join(METHODS)}")
    reduce, module, package = METHODS[name]
    try:
        module and importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"--method {name} needs {package} ({error}): pip install 'minitx[{name}]'") from None
    return reduce

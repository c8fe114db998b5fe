"""Ridge regression from the residual stream of every layer to a token's position.

Tested on held-out documents. The sums of ridge regression add up over documents, so memory does not
grow with them. L layers, T tokens, D width, Y targets: a token's position, and as the null a random
position of the document.
"""

from itertools import islice

import numpy as np

from ..contract import options
from ..maths import stats
from ..running import passes
from ..running.stream import UNSAVED

# of the documents, to learn from and to choose the penalty; the others are for the test
SHARES = 0.6, 0.2
LEAST = 6  # documents: with fewer, the test would have only one
BINS = 24  # stretches of places over which guesses are averaged for the figure
Y = 2  # the position, and a random one
BY_DOCUMENT = "squared", "absolute", "variation", "n"  # what `evaluate` keeps of each
SUMS = *BY_DOCUMENT, "guess"


def parts(documents):
    """Numbers of documents to learn from, to choose the penalty with, and to test on.

    Raises ValueError if there are too few.
    """
    options.several(documents, LEAST)
    fit, choose = (int(share * len(documents)) for share in SHARES)
    return fit, choose, len(documents) - fit - choose


class Part:
    """The documents from number `first` to before `last`; each pass reads them anew."""

    def __init__(self, documents, first, last):
        self.documents, self.first, self.last = documents, first, last

    def __len__(self):
        return self.last - self.first

    def __iter__(self):
        return islice(self.documents, self.first, self.last)


def targets(documents, index, document, seed):
    """The slice of a document's ordinary tokens, and their places, true and permuted: [n Y]."""
    inner = documents.ordinary(len(document))
    places = np.arange(len(document))[inner].astype(np.float64)
    permuted = np.random.default_rng((seed, index)).permutation(places)
    return inner, np.column_stack([places, permuted])


def fit_ridge(streams, documents, fit, choose, seed, run=UNSAVED):
    """{name: weights of ridge regression [Y L+1 D+1], their penalties [Y L+1]} of each stream.

    streams: {name: f(document) -> the stream [L+1 T D], or its Reading}, read in one pass. The
    first `fit` documents give the weights, the next `choose` choose the penalty.
    """

    def measure(i, document):
        inner, y = targets(documents, i, document, seed)
        part, sums = "fit" if i < fit else "choose", {}
        for name, stream_of in streams.items():
            x = yield from _stream(stream_of, document)
            sums[f"{part} {name}"] = np.array([stats.sums(layer[inner], y) for layer in x])
        return sums

    sums = run.gather(measure, Part(documents, 0, fit + choose), f"learning: {', '.join(streams)}")
    return {name: _ridge(sums[f"fit {name}"], sums[f"choose {name}"]) for name in streams}


def _stream(stream_of, document):
    """The stream that a function gives, or that its Reading does."""
    x = stream_of(document)
    return (yield x) if isinstance(x, passes.Reading) else x


def _ridge(fit, choose):
    """Weights and penalties of every target and layer, from sums of the two parts."""
    weights, penalties = [], []
    for y in range(Y):
        fits = [
            stats.choose_ridge(_target(train, y), _target(validation, y))
            for train, validation in zip(fit, choose)
        ]
        weights.append([w for w, _ in fits])
        penalties.append([penalty for _, penalty in fits])
    return np.array(weights), np.array(penalties)


def _target(sums, y):
    """The sums of one of the Y targets: [D+1+Y D+1+Y] -> [D+2 D+2]."""
    rows = [*range(len(sums) - Y), len(sums) - Y + y]
    return sums[np.ix_(rows, rows)]


def scored(streams, documents, seed, run):
    """What ridge regression tells of places: as `evaluate`, and with the "penalty" that was chosen.

    It is fitted on the first documents, its penalty chosen on the next, tested on the others.
    """
    fit, choose, _ = parts(documents)
    fits = fit_ridge(streams, documents, fit, choose, seed, run)
    weights = {name: w for name, (w, _) in fits.items()}
    scores = evaluate(streams, documents, fit + choose, weights, seed, run)
    return {name: scores[name] | {"penalty": fits[name][1]} for name in streams}


def evaluate(streams, documents, first, weights, seed, run=UNSAVED):
    """{name: R², errors and guesses of every layer} on the documents from number `first` on.

    streams: as for fit_ridge; weights: of each. Intervals are over these documents.
    """

    def measure(i, document):
        inner, y = targets(documents, first + i, document, seed)
        sums = {}
        for name, stream_of in streams.items():
            x = yield from _stream(stream_of, document)
            errors = _errors(x[:, inner], y, weights[name])
            sums |= {f"{key} {name}": value for key, value in errors.items()}
        return sums

    test = Part(documents, first, len(documents))
    keep = [f"{key} {name}" for key in BY_DOCUMENT for name in streams]
    sums = run.gather(measure, test, f"testing: {', '.join(streams)}", keep)
    return {name: _scores({key: sums[f"{key} {name}"] for key in SUMS}) for name in streams}


def _scores(sums):
    n, squared, absolute = sums["n"], sums["squared"], sums["absolute"]
    r2, r2_shuffled = 1 - squared.sum(axis=0) / sums["variation"].sum()
    guess = sums["guess"] / len(n)
    result = {"r2": r2}
    # the upper end of the error is the lower end of R²
    result["r2_interval"] = 1 - stats.positive_interval(squared[:, 0], sums["variation"])[::-1].T
    result["r2_shuffled"] = r2_shuffled
    result["error"] = absolute.sum(axis=0) / n.sum()
    result["error_interval"] = stats.positive_interval(absolute, n).T
    result["guesses"] = binned(guess[r2.argmax()])
    return result


def _errors(x, y, weights):
    """What `evaluate` needs of one document, from x [L+1 n D] and y [n Y]."""
    guess = np.matmul(x, weights[..., :-1, None])[..., 0] + weights[..., -1:]  # [Y L+1 n]
    error = y.T[:, None] - guess
    sums = {"squared": np.square(error).sum(axis=-1)}
    sums["absolute"] = abs(error[0]).sum(axis=-1)
    sums["guess"] = guess[0]
    sums["variation"] = np.square(y[:, 0] - y[:, 0].mean()).sum()
    sums["n"] = len(y)
    return sums


def binned(x):
    """Means of [n] over at most BINS stretches."""
    return np.array([part.mean() for part in np.array_split(x, min(BINS, len(x)))])

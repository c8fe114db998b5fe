"""How often 95% intervals over documents contain the mean of a whole text, and how wide they are.

    python tests/tools/interval_coverage.py --model MODEL … --text TEXT …

Of every piece of a text: its loss, and how much more it is with positions at zero. N documents are
pieces in a row, one from each N-th of the text (Cochran 1977), or found by seeking in it, as
experiments find them in a long text (fewer draws: each document is another). In brackets: half of
the mean width of an interval, in nats per token.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import minitx
from minitx.analysis.maths import stats
from minitx.analysis.measures import losses, position_edits
from minitx.analysis.texts import corpus
from minitx.analysis.texts.spread import Spread

SIZES = 4, 8, 12, 20, 60
STARTS = 1000  # draws of N documents
DRAWS = 1000  # of the bootstrap
SOUGHT = 60  # draws of N documents by seeking
EVERY = 8  # of a masked model's tokens one in so many is hidden, all of them at once


def of_pieces(model, text, T, bodies):
    """Losses [n], and how much more they are with positions at zero [n], of pieces of T tokens."""
    before, after = corpus.ends(model, text)
    without = position_edits.condition(position_edits.off(model.config))
    rows = []
    for i, body in enumerate(bodies):
        document = np.concatenate([before, body, after])
        if len(document) == T:
            rows.append([loss(model, document, condition, i) for condition in (None, without)])
    own, zero = np.array(rows).T
    return own, zero - own


def sought(model, text, T, truth):
    """Coverage and half the width by N, as cells, of documents found by seeking: [2 N]."""
    spread = Spread(model, text, T - sum(map(len, corpus.ends(model, text))))
    cells = []
    for N in SIZES:
        draws = [
            of_pieces(model, text, T, spread.documents(N, seed)) for seed in range(1, SOUGHT + 1)
        ]
        values = np.moveaxis(draws, 0, -1)  # [2 N draws]
        cells.append([cell(stats.interval(v), mean) for v, mean in zip(values, truth)])
    return zip(*cells)


def beginning(model, text, n_tokens, folder):
    """A file with the first lines of a text that have so many tokens."""
    path, n = Path(folder, "beginning.txt"), 0
    with path.open("w") as file:
        for line in corpus.lines(text):
            n += len(model.tokenizer.encode(f"{line}\n", special=False))
            if n > n_tokens:
                break
            file.write(f"{line}\n")
    return str(path)


def loss(model, document, condition, i):
    if model.config.causal:
        return losses.causal(model, document, condition=condition).mean()
    return losses.gaps(model, document, condition, EVERY, start=i % EVERY).mean()


def in_a_row(n, N, rng):
    """Numbers of N of n pieces in a row: [N STARTS]."""
    return rng.integers(0, n - N + 1, STARTS) + np.arange(N)[:, None]


def spaced(n, N, rng):
    """Numbers of N of n pieces, one from each N-th: [N STARTS]."""
    edges = np.arange(N + 1)[:, None] * n // N
    return rng.integers(edges[:-1], edges[1:], (N, STARTS))


def bootstrap(values, rng):
    """Quantiles of the means of documents resampled, as in version 1.0.0: [N S] -> [2 S]."""
    N = len(values)
    times = rng.multinomial(N, np.full(N, 1 / N), size=DRAWS)
    return np.quantile(times @ values / N, [0.025, 0.975], axis=0)


METHODS = {
    "in a row, bootstrap": (in_a_row, bootstrap),
    "in a row, Student's t": (in_a_row, lambda values, _: stats.interval(values)),
    "one from each N-th, Student's t": (spaced, lambda values, _: stats.interval(values)),
}


def row(values, draw, method):
    """Coverage of the values' mean and half the width by N, as cells."""
    rng = np.random.default_rng(0)
    truth, cells = values.mean(), []
    for N in SIZES:
        cells.append(cell(method(values[draw(len(values), N, rng)], rng), truth))
    return cells


def cell(interval, truth):
    """The share of intervals [2 S] that hold the truth, and half their width."""
    low, high = interval
    held = ((low <= truth) & (truth <= high)).mean()
    return f"{held:.2f} (±{(high - low).mean() / 2:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", nargs="+", default=["tiny-gpt2", "tiny-roberta"])
    parser.add_argument("--text", nargs="+", default=["sample"])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--pieces", type=int, default=1500, help="of each text, at most")
    given = parser.parse_args()
    print(f"| model, text | of | documents | {' | '.join(f'N = {N}' for N in SIZES)} |")
    print("|---" * (3 + len(SIZES)) + "|")
    for name in given.model:
        model = minitx.load(name)
        for text in given.text:
            with tempfile.TemporaryDirectory() as folder:
                table(model, name, text, folder, given)


def table(model, name, text, folder, given):
    size = given.tokens - sum(map(len, corpus.ends(model, text)))
    path = beginning(model, text, size * given.pieces, folder)
    measured = of_pieces(model, path, given.tokens, corpus.pieces(model, path, size))
    by_seeking = sought(model, path, given.tokens, [values.mean() for values in measured])
    for what, values, last in zip(("loss", "rise at zero"), measured, by_seeking):
        rows = {how: row(values, *method) for how, method in METHODS.items()}
        for how, cells in (rows | {"found by seeking, Student's t": last}).items():
            of = f"{name}, {Path(text).name} ({len(values)})"
            print(f"| {of} | {what} | {how} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

"""Is the position encoded in the norm of an embedding?

In the norm of an embedding, or in its direction: ridge regression predicts the place of a token
from one and from the other, for rows of the position table and for embeddings of documents that it
has not seen. Rows of noise differ in norm, too, and so tell few places apart: the null of a norm in
documents has the places in another order, the same in all of them. S sources, T tokens, D width, N
documents.
"""

from dataclasses import replace

import numpy as np

from ..contract import Asks, Of, Without, options, register
from ..drawing import Bar, When, bars, draw, row
from ..maths import nulls, stats
from ..measures import inputs, position_probe, residual_stream
from ..running.stream import UNSAVED
from ..texts import corpus

ROWS = "position rows"
WORDS = "words alone"
SUMS = "words + positions"
AFTER = "after the first norm"
SOURCES = WORDS, SUMS, AFTER
SHORT = {ROWS: "_rows", SUMS: "", AFTER: "_after", WORDS: "_words"}  # in names of results
COLORS = {ROWS: draw.BLUE, WORDS: draw.GREY, SUMS: draw.VERMILION, AFTER: draw.GREEN}
BINS = 16  # of norms, equally full: a readout of the norm knows which of them it is in
TELLS = 0.5  # R² of the norm alone, from which positions sit in it
SPLITS = 10  # of the rows into those learned from and those held out
ORDERS = 200  # of the places


def norms(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Documents = 60,
    tokens: options.Tokens = 0,
    seed: options.Seed = 0,
):
    """The position of a token, predicted from the norm and the direction of its embedding."""
    table = inputs.reachable(model)
    lengths = norms_of(table)
    scores = {ROWS: _of_rows(table, seed)}
    curves = {ROWS: (lengths, [lengths, lengths])}
    counts = {}
    if not model.missing:
        document_set = corpus.documents(model, text, documents, tokens)
        T = document_set.T
        of_texts = _norms(model, document_set, run)
        scores |= _of_documents(model, document_set, of_texts, seed, run)
        curves = {ROWS: (lengths[:T], [lengths[:T], lengths[:T]])}
        curves |= _curves(of_texts)
        counts["documents"] = np.array(position_probe.parts(document_set))
    r2, interval, shuffled = zip(*scores.values())
    means, quartiles = zip(*curves.values())
    result = {"r2": np.array(r2), "r2_interval": np.array(interval)}
    result["r2_shuffled"] = np.array(shuffled)
    result["sources"] = np.array([*scores])
    result["readouts"] = np.array([*readouts(None)])
    result["places"] = np.arange(len(means[0]))
    result["row_norms"] = np.array([lengths.min(), lengths.max()])
    result["norm_sources"] = np.array([*curves])
    result["norm_means"] = np.array(means)
    result["norm_quartiles"] = np.array(quartiles)
    return result | _headline(result) | counts


def embedded(model, document):
    """What stands at every token of a document [T] before the first attention: [S T D].

    S in the order of SOURCES.
    """
    cfg, w = model.config, model.weights
    words = w.W_E[document] * cfg.embed_scale
    sums = words + inputs.reachable(model)[: len(document)]
    if w.W_type is not None and cfg.default_type is not None:
        sums = sums + w.W_type[cfg.default_type]
    return np.array([words, sums, inputs.embedding_norm(model, sums)])


def norms_of(x):
    """[... D] -> [...], in float64."""
    return np.linalg.norm(np.asarray(x, np.float64), axis=-1)


def edges(x):
    """Borders of BINS equally full bins of numbers [... n]: [... BINS-1]."""
    return np.moveaxis(np.quantile(x, np.arange(1, BINS) / BINS, axis=-1), 0, -1)


def in_bins(x, borders):
    """Which bin each of [... n] is in, as 0 and 1: [... n BINS]."""
    number = (x[..., None] > borders[..., None, :]).sum(axis=-1)
    return (number[..., None] == np.arange(BINS)).astype(np.float64)


def readouts(borders):
    """{name: f([... n D]) -> what the regression sees}."""
    return {
        "norm": lambda x: in_bins(norms_of(x), borders),
        "direction": residual_stream.unit_vectors,
        "both": lambda x: x,
    }


def _of_rows(table, seed):
    """R² on held-out rows [T D]: mean over the splits [readouts], interval [readouts 2], null."""
    T = len(table)
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(SPLITS):
        order, shuffled = rng.permutation(T), rng.permutation(T)
        parts = np.split(order, [int(0.6 * T), int(0.8 * T)])
        borders = edges(norms_of(table[parts[0]]))
        features = [readout(table) for readout in readouts(borders).values()]
        of_places = [_held_out_r2(x, np.arange(T), parts) for x in features]
        of_shuffled = [_held_out_r2(x, shuffled, parts) for x in features]
        scores.append([of_places, of_shuffled])
    true, null = np.moveaxis(scores, 1, 0)
    return true.mean(axis=0), np.quantile(true, [0.025, 0.975], axis=0).T, null.mean(axis=0)


def _held_out_r2(x, y, parts):
    """R² of ridge regression of y [T] on x [T D]; parts: rows to fit, to choose, to test."""
    fit, choose, test = (stats.sums(x[rows], y[rows]) for rows in parts)
    weights, _ = stats.choose_ridge(fit, choose)
    return stats.r2(test, weights)


def _norms(model, document_set, run):
    """Norms of every source at every place of every document: [S N T]."""

    def measure(_, document):
        return {"norms": norms_of(embedded(model, document))}

    return run.gather(measure, document_set, "norms", keep=("norms",))["norms"].swapaxes(0, 1)


def _of_documents(model, document_set, lengths, seed, run):
    """{source: (R² [readouts], intervals [readouts 2], null [readouts])} on held-out documents."""
    fit, choose, _ = position_probe.parts(document_set)
    borders = edges(lengths[:, : min(fit, 8)].reshape(len(SOURCES), -1))
    streams = {
        name: lambda document, readout=readout: readout(embedded(model, document))
        for name, readout in readouts(borders).items()
    }
    scores = position_probe.scored(streams, document_set, seed, run)
    names = "r2", "r2_interval", "r2_shuffled"
    by_source = {}
    for i, source in enumerate(SOURCES):
        by_source[source] = [
            np.array([score[name][i] for score in scores.values()]) for name in names
        ]
        x = in_bins(lengths[i][:, document_set.ordinary()], borders[i])  # [N n BINS]
        counts = [part.sum(axis=0) for part in np.split(x, [fit, fit + choose])]
        by_source[source][-1][0] = _of_orders(counts, seed)
    return by_source


def _of_orders(counts, seed):
    """99% quantile of R² if places stood in another order, the same in all documents.

    counts: how often each place is in each bin, in documents to fit, to choose, to test: [n BINS].
    """
    rng = np.random.default_rng(seed)
    r2 = []
    for _ in range(ORDERS):
        places = rng.permutation(len(counts[0])).astype(np.float64)
        fit, choose, test = (sums_of(part, places) for part in counts)
        r2.append(stats.r2(test, stats.choose_ridge(fit, choose)[0]))
    return np.quantile(r2, nulls.CHANCE)


def sums_of(counts, y):
    """`stats.sums` of bins as 0 and 1, from how often each place is in each [n BINS], and y [n]."""
    c, n = counts.sum(axis=0), counts.sum(axis=1)
    xx = np.block([[np.diag(c), c[:, None]], [c, c.sum()]])
    xy = np.append(counts.T @ y, n @ y)
    return np.block([[xx, xy[:, None]], [xy, n @ y**2]])


def _curves(lengths):
    """{source: (mean [T], quartiles [2 T])} of the norms [S N T] at every place."""
    quartiles = np.quantile(lengths, [0.25, 0.75], axis=1).swapaxes(0, 1)
    return dict(zip(SOURCES, zip(lengths.mean(axis=1), quartiles)))


def _headline(r):
    """R² of norm and direction by name, with intervals and nulls."""
    endings = {"r2": "", "r2_interval": "_interval", "r2_shuffled": "_null"}
    figures = {}
    for i, source in enumerate(r["sources"]):
        for j, readout in enumerate(r["readouts"]):
            for name, ending in endings.items():
                figures[f"r2_{readout}{SHORT[str(source)]}{ending}"] = r[name][i, j]
    return figures


def _draw_norms(axes, r):
    """Mean norm and quartiles of each source by place, in its mean norms."""
    places = r["places"]
    for name, mean, (low, high) in zip(r["norm_sources"], r["norm_means"], r["norm_quartiles"]):
        unit = mean.mean()
        color = COLORS[name]
        axes.fill_between(places, low / unit, high / unit, color=color, alpha=0.2, linewidth=0)
        label = f"{name} (mean {unit:.3g})"
        axes.plot(places, mean / unit, color=color, linewidth=1.2, label=label)
    axes.set(xlabel="position of the token (tokens)", ylim=(0, None))
    axes.set_ylabel("norm, in mean norms (mean, quartiles)")
    axes.legend(**draw.ABOVE)


def of_readout(i, name):
    """The result `name` of readout number i, by source."""
    return lambda r: r[name][:, i]


def ends(r):
    """The norms of the first and the last row, in mean norms."""
    of_rows = r["norm_means"][0]
    return of_rows[[0, -1]] / of_rows.mean()


def _bar(i, name, color):
    """R² of readout number i."""
    results = (of_readout(i, result) for result in ("r2_interval", "r2_shuffled"))
    return Bar(of_readout(i, "r2"), name, color, *results)


def _asks(suffix, what):
    """Does the norm alone tell? Asked of the source whose results end with the suffix."""
    return Asks(
        f"R² of the position predicted from the norm of {what}",
        value=f"norm {{r2_norm{suffix}:z.3f}} (direction: {{r2_direction{suffix}:z.3f}}); rows at "
        "the ends: {ends:.2f} mean norms",
        chance=f"norm {{r2_norm{suffix}_null:z.3f}}",
        rule=Of(f"r2_norm{suffix}", enough=TELLS),
    )


OF_ROWS = _asks("_rows", "a position row, rows held out")
R2 = {  # templates: R² of a readout of a source, and its interval
    name + suffix: f"{{r2_{name}{suffix}:.3f}} ({{r2_{name}{suffix}_interval:to .3f}})"
    for name in ("norm", "direction")
    for suffix in SHORT.values()
}
OF_SUMS = _asks("", "the sum of word and position embeddings, documents held out")

register(
    norms,
    look="The left shows whether the norm changes with the place. The right shows how well the "
    "norm alone (orange) and the direction alone (blue) tell the place. What attention reads comes "
    "after a norm that brings every token to nearly one length: there the norm can tell little. "
    "Words alone are the control: they come in no order.",
    published="Left to be investigated: positions are added to embeddings, and might be encoded "
    "in the norm, so that a mask that changes norms could carry them (Hirata's slides).",
    figure="slides, masks",
    numbers="""
        r2_norm: R² of the position predicted from the norm of the sum of word and position
            embeddings, documents held out
            null: 99% quantile of R² from the norm of the sum of word and position embeddings, the
            places in another order, one for all documents
        r2_direction: R² of the position predicted from the direction of the sum of word and
            position embeddings, documents held out
            null: R² from the direction of the sum of word and position embeddings, positions
            shuffled
        r2_[norm|direction]_rows: R² of the position predicted from the [norm|direction] of a
            position row, rows held out
            null: R² from the [norm|direction] of a position row, positions shuffled, mean over ten
            splits
        r2_norm_after: R² of the position predicted from the norm of what the first attention
            reads, after a LayerNorm
            null: 99% quantile of R² from the norm of what the first attention reads, the places in
            another order, one for all documents
        r2_direction_after: R² of the position predicted from the direction of what the first
            attention reads, after a LayerNorm
            null: R² from the direction of what the first attention reads, positions shuffled
        fact r2_[norm|direction]_interval by from, to: 95% interval over documents of the R²
            from the [norm|direction] of word and position
        r2_norm_words: R² of the position predicted from the norm of words alone
            null: 99% quantile of R² from the norm of words alone, the places in another order, one
            for all documents
        fact row_norms by smallest, largest: smallest and largest norm of a position row
        fact documents by to learn from, to choose, to test on: documents to learn from, to choose
            the penalty, to test on
    """,
    weights_only=True,
    least_documents=position_probe.LEAST,
    answer=replace(OF_SUMS, without=Without("sources.size > 1", OF_ROWS)),
    says=[
        "The norms of position rows go from {row_norms[0]:.3g} to {row_norms[1]:.3g}. The position "
        f"of a held-out row is predicted from its norm with R² {R2['norm_rows']}, from its "
        f"direction with {R2['direction_rows']}; shuffled positions give {{r2_norm_rows_null:.3f}} "
        "and {r2_direction_rows_null:.3f}. At the first and the last position the norm of a row is "
        "{ends:.2f} times the mean: it may tell the ends where R² over all positions is near 0.",
        When(
            "sources.size > 1",
            " For the sum of word and position embeddings, on held-out documents, the norm gives "
            f"R² {R2['norm']} (in 99 of 100 other orders of the places at most "
            f"{{r2_norm_null:z.3f}}), the direction {R2['direction']}; after the first norm the "
            f"norm gives {R2['norm_after']}, the direction {R2['direction_after']}. Words alone "
            f"give {R2['norm_words']} and {R2['direction_words']}.",
            " This checkpoint has no word embeddings to add to them.",
        ),
    ],
    draw=row(
        _draw_norms,
        bars(
            _bar(0, "norm alone", draw.ORANGE),
            _bar(1, "direction alone", draw.SKY),
            _bar(2, "both", draw.GREY),
            ticks=lambda r: [draw.wrapped(str(name), 14) for name in r["sources"]],
            null="null: positions shuffled\n(norm alone: alike in all documents)",
            ylabel="R² of the position, held out",
            ylim=(None, 1.02),
        ),
        widths=(1.2, 1),
        height=5,
    ),
)

"""Do positions sit in the norm of an embedding, or in its direction?

Ridge regression reads the place of a token off one and off the other: off rows of the position table that it has not
seen, and off the embeddings of documents that it has not seen. S sources, T tokens, D width, N documents.
Order: sources, readouts, the picture, the experiment, its parts.
"""

import numpy as np

from minitx.kernels import moments, normalise

from .. import corpus, draw, inputs, stats, stream
from ..registry import experiment
from .probe import learned, parts, tested
from .removal import ABOVE, directions

ROWS, WORDS, SUMS, AFTER = "position rows", "words alone", "words + positions", "after the first norm"
SOURCES = WORDS, SUMS, AFTER
COLORS = {ROWS: draw.BLUE, WORDS: draw.GREY, SUMS: draw.VERMILION, AFTER: draw.GREEN}
BINS = 16    # of norms, equally full: a readout of the norm knows which of them it is in
SPLITS = 10  # of the rows into those learned from and those held out


def embedded(model, document):
    """What stands at every token of a document [T] before the first attention: [S T D], in the order of SOURCES."""
    cfg, w = model.config, model.weights
    words = w.W_E[document]
    sums = words + inputs.reachable(model)[:len(document)]
    if w.W_type is not None and cfg.default_type is not None:
        sums = sums + w.W_type[cfg.default_type]
    gain, bias = (model.layers[0].ln1_w, model.layers[0].ln1_b) if cfg.pre_norm else (w.ln_embed_w, w.ln_embed_b)
    return np.array([words, sums, normalise(sums, *moments(sums, cfg.eps), gain, bias)])


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
    return {"norm": lambda x: in_bins(norms_of(x), borders), "direction": directions, "both": lambda x: x}


def plot(r):
    """Norms by place on the left, what can be read off norm and direction on the right."""
    figure = draw.figure(11, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.2, 1))
    for name, mean, (low, high) in zip(r["norm_sources"], r["norm_means"], r["norm_quartiles"]):
        unit = mean.mean()
        left.fill_between(r["places"], low / unit, high / unit, color=COLORS[name], alpha=0.2, linewidth=0)
        left.plot(r["places"], mean / unit, color=COLORS[name], linewidth=1.2, label=f"{name} (mean {unit:.3g})")
    left.set(xlabel="place of the token (tokens)", ylabel="norm, in mean norms (mean, quartiles)", ylim=(0, None))
    left.legend(**ABOVE)
    names, x = r["sources"], np.arange(len(r["sources"]))
    for i, (readout, color) in enumerate(zip(r["readouts"], (draw.ORANGE, draw.SKY, draw.GREY))):
        value, (low, high), at = r["r2"][:, i], r["r2_interval"][:, i].T, x + 0.27 * (i - 1)
        beside = [np.maximum(value - low, 0), np.maximum(high - value, 0)]
        right.bar(at, value, 0.25, color=color, label=readout, yerr=beside, capsize=2)
        right.plot(at, r["r2_shuffled"][:, i], "_", color="black", markersize=11,
                   label="null: places shuffled" if i == 2 else None)
    right.axhline(0, color="black", linewidth=0.6)
    right.set_xticks(x, [name.replace(" ", "\n", 1) for name in names])
    right.set(ylabel="R² of the place, held out", ylim=(min(-0.1, 1.05 * r["r2_interval"].min()), 1.02))
    right.legend(**ABOVE)
    return figure


def says(r):
    """What the numbers show, in plain words."""
    def put(source, readout):
        i, j = r["sources"].tolist().index(source), r["readouts"].tolist().index(readout)
        return "{:.3f} ({:.3f} to {:.3f})".format(r["r2"][i, j], *r["r2_interval"][i, j])
    text = (f"The norms of position rows go from {r['row_norms'].min():.3g} to {r['row_norms'].max():.3g}. The "
            f"place of a row held out is read off its norm with R² {put(ROWS, 'norm')} and off its direction with "
            f"{put(ROWS, 'direction')}; shuffled places give {r['r2_norm_rows_null']:.3f} and "
            f"{r['r2_direction_rows_null']:.3f}.")
    if len(r["sources"]) == 1:
        return text + " This checkpoint has no words to add to them."
    return (f"{text} In words and positions together, on documents held out, the norm gives {put(SUMS, 'norm')}, "
            f"the direction {put(SUMS, 'direction')}; after the first norm the norm gives {put(AFTER, 'norm')}, "
            f"the direction {put(AFTER, 'direction')}. Words alone give {put(WORDS, 'norm')} and "
            f"{put(WORDS, 'direction')}.")


@experiment(
    asks="Do positions sit in the norm?",
    draw=plot,
    look="On the left: does the norm change with the place? On the right, orange: how well the norm alone tells "
         "the place, and blue, the direction alone. What attention reads comes after a norm that brings every "
         "token to nearly one length: there the norm can tell little. Words alone are the control: they come in "
         "no order.",
    published="Left to be investigated: positions are added to embeddings, and might sit in the norm, so that a "
              "mask that changes norms could carry them (Hirata's slides).",
    figure="slides, masks",
    says=says,
    weights_only=True,
    numbers={
        "r2_norm_rows": "R² of the place from the norm of a position row, rows held out",
        "r2_norm_rows_null": "the same when the places are shuffled",
        "r2_direction_rows": "R² of the place from the direction of a position row, rows held out",
        "r2_direction_rows_null": "the same when the places are shuffled",
        "r2_norm": "R² of the place from the norm of word and position together, documents held out",
        "r2_norm_null": "the same when the places are shuffled",
        "r2_norm_interval": "95 % interval of it, documents drawn anew",
        "r2_direction": "R² of the place from the direction of word and position together, documents held out",
        "r2_direction_null": "the same when the places are shuffled",
        "r2_direction_interval": "95 % interval of it, documents drawn anew",
        "r2_norm_after": "R² from the norm of what the first attention reads, after a LayerNorm",
        "r2_direction_after": "R² from its direction",
        "r2_norm_words": "R² from the norm of words alone",
        "row_norms": "smallest and largest norm of a position row",
        "documents": "documents to learn from, to choose the penalty, to test on"})
def norms(model, *, text: str = "sample", documents: int = 60, tokens: int = 0, column: str = "", seed: int = 0):
    """The place of a token, read off the norm and the direction of position rows and embeddings.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: the model's longest input)
    column: columns of a .csv or keys of a .jsonl file that hold the text
    seed: seed of the splits and of the shuffles
    """
    table = inputs.reachable(model)
    lengths = norms_of(table)
    found = [(ROWS, *_of_rows(table, seed))]
    curves = [(ROWS, lengths, [lengths, lengths])]
    if not model.missing:
        read = corpus.documents(model, text, documents, tokens, column=column)
        found += _of_documents(model, read, seed)
        curves = [(name, x[:read.T], np.array(ends)[:, :read.T]) for name, x, ends in curves] + _curves(model, read)
    names, *values = map(list, zip(*found))
    result = dict(zip(("r2", "r2_interval", "r2_shuffled"), map(np.array, values)))
    result |= {"sources": np.array(names), "readouts": np.array([*readouts(None)]),
               "places": np.arange(len(curves[0][1])), "row_norms": np.array([lengths.min(), lengths.max()])}
    result |= dict(zip(("norm_sources", "norm_means", "norm_quartiles"), map(np.array, zip(*curves))))
    return result | _headline(result) | ({} if model.missing else {"documents": np.array(parts(read))})


def _of_rows(table, seed):
    """R² [readouts], interval over the splits [readouts 2] and null [readouts] for held-out rows [T D]."""
    T, rng, found = len(table), np.random.default_rng(seed), []
    for _ in range(SPLITS):
        order, mixed = rng.permutation(T), rng.permutation(T)
        fit, choose, test = np.split(order, [int(0.6 * T), int(0.8 * T)])
        features = [read(table) for read in readouts(edges(norms_of(table[fit]))).values()]
        found.append([[_held_out(x, y, fit, choose, test) for x in features] for y in (np.arange(T), mixed)])
    true, shuffled = np.moveaxis(found, 1, 0)
    return true.mean(axis=0), np.quantile(true, [0.025, 0.975], axis=0).T, shuffled.mean(axis=0)


def _held_out(x, y, fit, choose, test):
    """R² of ridge regression of y [T] on x [T D] on the rows `test`."""
    of_fit, of_choice, of_test = (stats.sums(x[rows], y[rows]) for rows in (fit, choose, test))
    return stats.r2(of_test, stats.chosen_ridge(of_fit, of_choice)[0])


def _of_documents(model, read, seed):
    """(source, R² [readouts], intervals [readouts 2], null [readouts]) on documents held out, for every source."""
    fit, choose, _ = parts(read)
    some = np.concatenate([embedded(model, document) for document in read.first(min(fit, 8))], axis=1)
    borders = edges(norms_of(some))
    found = []
    for readout in readouts(borders).values():
        def stream_of(document, readout=readout):
            return readout(embedded(model, document))
        weights, _ = learned(stream_of, read, fit, choose, seed)
        found.append(tested(stream_of, read, fit + choose, weights, seed))
    return [(name, *(np.array([one[key][i] for one in found]) for key in ("r2", "r2_interval", "r2_shuffled")))
            for i, name in enumerate(SOURCES)]


def _curves(model, read):
    """(source, mean [T], quartiles [2 T]) of the norms at every place, over documents."""
    def measure(_, document):
        return {"norms": norms_of(embedded(model, document))}
    found = stream.gather(measure, read, "norms", keep=("norms",))["norms"].swapaxes(0, 1)  # [S N T]
    return [(name, x.mean(axis=0), np.quantile(x, [0.25, 0.75], axis=0)) for name, x in zip(SOURCES, found)]


def _headline(r):
    """R² of norm and direction by name, with intervals and nulls."""
    short = {ROWS: "_rows", SUMS: "", AFTER: "_after", WORDS: "_words"}
    ends = {"r2": "", "r2_interval": "_interval", "r2_shuffled": "_null"}
    return {f"r2_{readout}{short[str(source)]}{end}": r[name][i, j] for i, source in enumerate(r["sources"])
            for j, readout in enumerate(r["readouts"]) for name, end in ends.items()}

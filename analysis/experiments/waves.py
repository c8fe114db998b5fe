"""Columns of queries and keys as waves over positions, in a few heads; the paper shows two columns of one.

Q = X U_Q and K = X U_K, where W_A = W_Q W_K^T = U_Q S U_K^T. T tokens, D width, d width of a head, r columns of Q,
n heads drawn, c columns drawn of each, R lags, positive to the right. Order: the picture, the experiment, its
options and input, one head.
"""

import re

import numpy as np

from .. import corpus, draw, factors, heads as names, inputs, profiles, spectra, waves as maths
from ..registry import experiment

SHUFFLES = 200  # of the rows: a wave is what none of them reaches
FIRST = 64      # positions that the paper draws
MOST = 6        # heads, and columns of each, that a figure holds


def plot(r):
    """One row for each column: as it is, filtered, and how alike query and key are at each lag."""
    n, c, _ = r["q"].shape
    figure = draw.figure(11, 1.15 * n * c + 1.3)
    grid = figure.subplots(n * c, 3, sharex="col", squeeze=False, width_ratios=(2, 2, 1))
    for row, (head, j) in zip(grid, np.ndindex(n, c)):
        _wave(row[0], r, "", head, j)
        _wave(row[1], r, "_band", head, j)
        _alike(row[2], r, head, j)
        row[0].set_ylabel(f"{r['heads'][head]}, column {r['columns'][head, j]}\n({r['papers_heads'][head]}, "
                          f"{r['papers_columns'][head, j]})", fontsize=8)
    _labels(grid, r)
    figure.legend(handles=[*_legend(r)], loc="outside upper left", ncols=6, borderpad=0)
    figure.supylabel("head and column from 0; in parentheses as the paper counts, from 1", fontsize=8)
    return figure


def _wave(axes, r, suffix, head, j):
    shown = np.arange(r["show"])
    for name, color in (("q", draw.BLUE), ("k", draw.ORANGE)):
        axes.plot(shown, r[name + suffix][head, j, :len(shown)], color=color, linewidth=1.1)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set_xlim(0, shown[-1])


def _alike(axes, r, head, j):
    """Correlation at each lag, its highest point marked, and both nulls."""
    t, lag, highest = r["lags"], r["lag"][head, j], r["correlation"][head, j]
    axes.axhline(r["correlation_null"][head, j], color=draw.GREY, linestyle="--", linewidth=1)
    if "xcorr_text" in r:
        axes.plot(t, r["xcorr_text"][head, j], ":", color=draw.GREEN, linewidth=1.5)
    axes.plot(t, r["xcorr"][head, j], "o-", color="black", markersize=2 if len(t) < 60 else 0, linewidth=1)
    axes.plot(lag, highest, "o", color=draw.VERMILION, markersize=5)
    axes.axvline(0, color="black", linewidth=0.5)
    if r["causal"]:
        axes.axvspan(0, t[-1], color=draw.GREY, alpha=0.15, linewidth=0)
    axes.text(0.98, 0.03, f"{draw.offset(lag)}: {highest:.2f}", transform=axes.transAxes, ha="right", va="bottom",
              color=draw.VERMILION, fontsize=8)
    axes.set(ylim=(-1.05, 1.05), xlim=(t[0], t[-1]))


def _labels(grid, r):
    source = {"positions": "positions alone", "text": "a text"}[str(r["input"])]
    periods = " to ".join(f"{r['T'] / f:.3g}" for f in r["band"][::-1])
    low, high = r["band"]
    for axes, title in zip(grid[0], (
            f"values of query and key, of {source},\nfirst {r['show']} of {r['T']} positions",
            f"filtered: {low} to {high} cycles in {r['T']} tokens,\nperiods of {periods} tokens",
            "correlation by lag,\nnot filtered")):
        axes.set_title(title)
    for axes, label in zip(grid[-1], ("position (tokens)", "position (tokens)", "lag (tokens, + = right)")):
        axes.set_xlabel(label)


def _legend(r):
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    yield Line2D([], [], color=draw.BLUE, label="query")
    yield Line2D([], [], color=draw.ORANGE, label="key")
    yield Line2D([], [], color="black", marker="o", markersize=3, label="correlation of query and key")
    yield Line2D([], [], color=draw.GREY, linestyle="--", label="null: 95 % of random directions stay below")
    if "xcorr_text" in r:
        yield Line2D([], [], color=draw.GREEN, linestyle=":", label="null: the text without positions")
    if r["causal"]:
        yield Patch(color=draw.GREY, alpha=0.15, linewidth=0, label="hidden from the query")


def says(r):
    """What the numbers show, in plain words."""
    hidden = " A causal head cannot look to the right." if r["causal"] and (r["lag"] > 0).any() else ""
    alone = " All this is of positions alone, without words, where any smooth column counts as periodic." \
        if r["input"] == "positions" else ""
    return (f"{' '.join(_says_of(r, i) for i in range(len(r['heads'])))}{hidden} Replacing (W_Q, W_K) by (W_A, I) "
            f"changes no score by more than {r['replaced'].max():.0e} of the largest.{alone}")


def _says_of(r, i):
    columns, lag, value, null = (r[key][i] for key in ("columns", "lag", "correlation", "correlation_null"))
    return (f"{r['heads'][i]}: {r['n_periodic'][i]} of {r['r']} columns are periodic in query and key (rows "
            f"shuffled: {r['n_periodic_null'][i]} at most); in column{'s' * (len(columns) > 1)} "
            f"{_list(columns, '{}')} the two are most alike at {_list(map(draw.offset, lag), '{}')} tokens, with a "
            f"correlation of {_list(value, '{:.2f}')}, in {(value > null).sum()} of {len(value)} more than random "
            f"directions reach ({_list(null, '{:.2f}')}).")


def _list(values, form):
    return " and ".join(map(form.format, values))


@experiment(
    asks="Are queries and keys waves, one shifted against the other?",
    draw=plot,
    look="Blue and orange are one column of the query and of the key, token after token. Where both are the same "
         "wave and one runs ahead, the correlation peaks at that lag (red): each query meets its like so many "
         "tokens away, and there attention goes. The middle panels keep one octave around the position table's "
         "largest peak of more than 4 cycles, without the mean and most of the words; the correlation is of the "
         "columns as they are. A peak counts only above the dashed line, which random directions in place of U_K "
         "reach in 1 of 20 cases, taking the most fitting of as many columns; what stays without positions "
         "(dotted) is the words'. Where a wave meets its like in the grey, to the right, a causal head sees only "
         "the slope that leads there.",
    published="With W_A = U_Q S U_K^T, about 4 to 12 columns of X U_Q and X U_K are periodic in heads that attend by "
              "position, and query and key are out of phase in them: the paper's head(1,1), here L0H0, columns 5 "
              "and 6, here 4 and 5 (Yamamoto and Matsuzaki, figure 4).",
    figure="figure 4",
    says=says,
    weights_only=True,
    numbers={
        "heads": "heads shown",
        "columns": "columns shown of each, in the order of the singular values, from 0",
        "lag": "tokens by which the key's column is shifted against the query's: the lag of their highest "
               "correlation within reach",
        "correlation": "that correlation, of the columns as they are, not filtered",
        "correlation_null": "95 % quantile of the same for random orthonormal directions in place of U_K",
        "correlation_text": "the correlation at that lag without positions: what the words alone give",
        "n_periodic": "columns with a frequency of 2 cycles or more that no shuffle of the rows reaches, in query "
                      "and key both",
        "n_periodic_null": "the most in any shuffle of the rows",
        "n_periodic_text": "the same number without positions: what the words alone give",
        "frequency": "the peak of the position table around which the band lies, in cycles over the document",
        "band": "the band of the filter, in the same unit",
        "replaced": "largest change of a score, over the largest score, when (W_A, I) takes the place of (W_Q, W_K)"})
def queries_keys(model, *, head: str = "auto", columns: str = "auto", input: str = "auto", low: int = 0,
                 high: int = 0, bias: int = 0, reach: int = 0, show: int = 0, text: str = "sample", tokens: int = 0,
                 seed: int = 0):
    """Columns of queries and keys against position, filtered and not, and the shift between them.

    head: heads to show, as L0H0,L1H2; auto: the sharpest to the left, to the right, and the broadest
    columns: columns to show, from 0, as 4,5 (the paper's 5 and 6); auto: the 2 that carry most of the band
    input: text (first document), positions (alone), or auto: text, positions in a partial checkpoint
    low: lowest frequency that the filter keeps, in cycles over the document (0: half an octave below the peak)
    high: highest frequency that it keeps (0: half an octave above the peak)
    bias: 1: with the biases of queries and keys, so that the scores are exact; 0: without, as in the paper
    reach: farthest lag tried, in tokens (0: 10, or half a period of the peak if that is longer)
    show: positions to draw (0: 64, or two periods of the peak if they are longer)
    text: file or folder with one document or paragraph a line, - for standard input, or sample
    tokens: length of the document (0: the model's longest input)
    seed: seed of the shuffles and of the random directions
    """
    corpus.within("bias", bias, 0, 1)
    read, T = _read(model, input, text, tokens)
    f, _ = maths.position_peak(inputs.reachable(model)[:T], seed)
    kept = band(f, T, low, high)
    reach, show = reach or min(max(10, T // f // 2), T // 2), show or min(max(FIRST, 2 * T // f), T)
    corpus.within("reach", reach, 1, T // 2)
    corpus.within("show", show, 8, T)
    picked = _columns(columns, min(model.config.d_head, model.config.d_model + bias))
    shown = _heads(model, head, read)
    found = [_one(W, *x, picked, *kept, reach, seed) for W, x in
             zip(_weights(model, shown, bias), _inputs(model, shown, read, T, bias))]
    each = {name: np.array([one[name] for one in found]) for name in found[0]}
    return each | {
        "heads": np.array([names.name(*pair) for pair in shown]), "papers_columns": each["columns"] + 1,
        "papers_heads": np.array([names.papers_name(*pair) for pair in shown]), "T": T, "show": show,
        "frequency": f, "band": np.array(kept), "input": "text" if read else "positions",
        "lags": profiles.offsets(reach), "causal": model.config.causal, "r": each["S"].shape[1]}


# options and input

def _read(model, source, text, tokens):
    """(documents of T tokens, T), or (None, T) for positions alone."""
    if source not in ("auto", "text", "positions"):
        raise ValueError(f"--input is {source!r}; wanted auto, text or positions")
    if source == "text" and model.missing:
        raise ValueError(f"--input is text, but {len(model.missing)} tensors of this checkpoint are missing; "
                         "wanted positions or auto")
    read = corpus.documents(model, text, tokens=tokens) if source != "positions" and not model.missing else None
    T = read.T if read else tokens or model.config.n_ctx
    corpus.within("tokens", T, 16, model.config.n_ctx)
    return read, T


def band(f, T, low=0, high=0):
    """(low, high) as given, for 0 half an octave below and above f; ValueError for what is no band."""
    low, high = low or max(round(f / 2 ** 0.5), 1), high or min(round(f * 2 ** 0.5), T // 2)
    if not 1 <= low <= high <= T // 2:
        raise ValueError(f"--low {low} --high {high}: wanted a band within 1 to {T // 2} cycles, low before high")
    return low, high


def _columns(columns, r):
    """'4,5' -> [4, 5]; None for auto."""
    if columns == "auto":
        return None
    found = [int(one) if re.fullmatch(r"\d+", one) else r for one in re.split(r"[,\s]+", columns.strip())]
    if max(found) >= r or len(found) > MOST:
        raise ValueError(f"--columns {columns!r}: wanted up to {MOST} of the columns 0 to {r - 1}, joined by commas, "
                         "or auto")
    return np.array(found)


def _heads(model, head, read):
    found = names.chosen(head, model, read)
    if len(found) > MOST:
        raise ValueError(f"--head names {len(found)} heads; a figure holds {MOST}")
    return found


def _weights(model, shown, bias):
    """W_Q and W_K of each head, [D d] each; with bias the biases are a last row, [D + 1 d]."""
    for layer, head in shown:
        W = [np.asarray(x, np.float64) for x in inputs.query_key(model, layer, head, bias=bool(bias))]
        yield [np.vstack(pair) for pair in zip(W[:2], W[2:])] if bias else W


def _inputs(model, shown, read, T, bias):
    """What each head reads, [T D] (with bias [T D + 1]), and the same without positions; None if they are alone."""
    if read is None:
        found = [(inputs.of_positions(model, layer, T), None) for layer, _ in shown]
    else:
        document, none = read.first()[0], {"pos_embed": np.zeros_like}
        whole, bare = inputs.of_text(model, document), inputs.of_text(model, document, none)
        found = [(whole[layer], bare[layer]) for layer, _ in shown]
    for pair in found:
        pair = [None if x is None else np.asarray(x, np.float64) for x in pair]
        yield [factors.with_ones(x) if bias and x is not None else x for x in pair]


def _one(W, x, bare, picked, low, high, reach, seed):
    """All that is drawn and said of one head; bare: its input without positions, or None."""
    U_Q, S, U_K = factors.svd(*W)
    q, k = x @ U_Q, x @ U_K
    j = np.sort(np.argsort(-maths.carried(q, k, S, low, high), kind="stable")[:2]) if picked is None else picked
    alike = maths.correlation(q[:, j], k[:, j], reach)
    kept = S > len(U_Q) * np.finfo(S.dtype).eps * S[0]  # the others are any directions at all
    (n, most), best = maths.periodic(q[:, kept], k[:, kept], SHUFFLES, seed), alike.argmax(axis=0)
    found = {"columns": j, "S": S, "lag": best - reach, "xcorr": alike.T, "correlation": alike.max(axis=0),
             "correlation_null": maths.by_chance(x, q[:, j], q.shape[1], low, high, reach, seed),
             "n_periodic": n, "n_periodic_null": most, "replaced": maths.replaced(x, *W)}
    for name, column in (("q", q[:, j]), ("k", k[:, j])):
        found |= {name: column.T, name + "_band": spectra.bandpass(column, low, high).T}
    if bare is not None:
        q, k = bare @ U_Q, bare @ U_K
        words = maths.correlation(q[:, j], k[:, j], reach)
        found |= {"xcorr_text": words.T, "correlation_text": words[best, np.arange(len(j))],
                  "n_periodic_text": maths.periodic(q[:, kept], k[:, kept], SHUFFLES, seed)[0]}
    return found

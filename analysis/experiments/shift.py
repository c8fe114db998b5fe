"""What a model predicts when all positions are moved by k: are they places, or only distances?

N documents, T tokens, K shifts. Order: the picture, the experiment, its parts.
"""

import numpy as np

from .. import corpus, draw, losses, stats, stream
from ..registry import Unfit, experiment
from . import removal

AGAINST = "zero", "shuffled"  # tables of the comparison: nothing left of positions
FLIPS = 1000


def plot(r):
    """The loss against the shift, beside that without positions; its change with the null, on a scale of its own."""
    figure = draw.figure(10, 4)
    left, right = figure.subplots(1, 2)
    k, loss, (low, high) = r["shifts"], r["losses"], r["change_interval"].T
    left.plot(k, loss, marker="o", markersize=3, color=draw.VERMILION, label="all positions moved")
    for way, value in zip(AGAINST, r["losses_against"]):
        left.axhline(value, color=removal.COLORS[way], linestyle="--", label=f"positions: {way}")
    left.axhline(r["loss_null"], color="black", linestyle=":", label="null: frequencies of the tokens")
    left.set(ylim=(0, None), ylabel=f"{r['predicts']} (nats per token)")
    right.axhspan(-r["worst_null"], r["worst_null"], color=draw.GREY, alpha=0.3, linewidth=0,
                  label="null: signs of the changes dealt at random, 95 %")
    right.fill_between(k, low, high, color=draw.VERMILION, alpha=0.25, linewidth=0, label="95 % over documents")
    right.plot(k, loss - loss[0], marker="o", markersize=3, color=draw.VERMILION)
    right.set_ylabel("change from no shift (nats per token)")
    for axes in (left, right):
        axes.set_xlabel(f"shift of all positions (tokens; documents of {r['T']})")
        axes.legend(**removal.ABOVE | {"ncols": 1 + (axes is left)})
    return figure


def says(r):
    """What the numbers show, in plain words."""
    at = int(np.flatnonzero(r["shifts"] == r["worst_at"])[0])
    low, high = r["change_interval"][at]
    verdict = "more than" if abs(r["worst"]) > r["worst_null"] else "no more than"
    return (f"Moved by up to {r['shifts'][-1]} tokens, all positions together, the {r['predicts']} of "
            f"{r['loss']:.3f} nats per token changes most at {r['worst_at']}: by {r['worst']:+.3f} ({low:+.3f} to "
            f"{high:+.3f}), {verdict} chance alone makes of these documents ({r['worst_null']:.3f}). Positions at "
            f"zero change it by {r['change_zero']:+.3f}, and rows in random order by {r['change_shuffled']:+.3f}.")


@experiment(
    asks="Do positions matter as places, or only as distances?",
    draw=plot,
    look="A flat line: the model uses how far apart tokens are, and it does not matter where the text begins. The "
         "dashed lines show what losing positions altogether costs. On the right the change by itself: outside "
         "the grey band it is more than chance.",
    published="Models with learned absolute positions predict worse when the positions of a whole text are moved: "
              "they depend on where it begins (Sinha et al. 2022).",
    says=says,
    numbers={
        "worst": "largest change of the loss in nats per token, over all shifts (masked models: of the pseudo-loss)",
        "worst_null": "95 % quantile of the same when the sign of each document's change is dealt at random",
        "worst_at": "the shift at which it comes, in tokens",
        "worst_interval": "95 % interval of that change, documents drawn anew",
        "loss": "loss in nats per token without a shift",
        "loss_null": "loss of the frequencies of the tokens in these documents",
        "perplexity": "e to the loss per token, at every shift",
        "change_zero": "change of the loss with the position table at zero",
        "change_shuffled": "change of the loss with its rows shuffled",
        "shifts": "the shifts, in tokens",
        "n_predicted": "tokens whose loss is measured, at each shift",
        "documents": "documents measured"})
def shift(model, *, text: str = "sample", documents: int = 20, tokens: int = 0, column: str = "", steps: int = 7,
          every: int = 32, seed: int = 0):
    """Loss against a shift of all positions, from none to as far as the table goes.

    text: file or folder with one document or paragraph a line, .csv, .jsonl, - for standard input, or sample
    documents: documents to read (0: as many as the text holds, at most 100)
    tokens: length of each document (0: half of the model's longest input)
    column: columns of a .csv or keys of a .jsonl file that hold the text
    steps: how many shifts, none among them
    every: of a masked model, hide one token in so many
    seed: seed of the shuffled table and of the null
    """
    if model.config.head not in removal.PREDICTS:
        raise Unfit(f"shift needs a masked or causal language model; this checkpoint's head is {model.config.head}")
    corpus.within("steps", steps, 2, 64)
    corpus.at_least("every", every, 1)
    longest = model.config.n_ctx
    read = corpus.documents(model, text, documents, tokens or longest // 2, column=column)
    corpus.several(read)
    if read.T == longest:
        raise ValueError(f"--tokens {tokens}: documents as long as the model reads leave no room for a shift")
    shifts = np.unique(np.linspace(0, longest - read.T, steps).round().astype(int))
    tables = removal.tables(model, seed)
    ways = [{"positions": k + np.arange(read.T)} for k in shifts]
    ways += [{"condition": removal.stand_in(tables[way])} for way in AGAINST]

    def measure(i, document):
        ordinary = document[len(read.before):len(document) - len(read.after)]
        start = i % min(every, len(ordinary))
        return {"counts": np.bincount(ordinary, minlength=model.config.n_vocab),
                "costs": np.array([_cost(model, document, start, every, way) for way in ways])}
    found = stream.gather(measure, read, "documents", keep=("costs",))
    result = {"T": read.T, "documents": len(read), "shifts": shifts, "loss_null": stats.entropy(found["counts"]),
              "predicts": removal.PREDICTS[model.config.head]}
    return result | _changes(*np.moveaxis(found["costs"], 2, 0), shifts, seed)


def _cost(model, document, start, every, way):
    """Sum of the losses of one document, and their number."""
    masked = model.config.head == "masked"
    found = losses.masked(model, document, every=every, start=start, **way) if masked else \
        losses.causal(model, document, **way)
    return found.sum(), len(found)


def _changes(total, n, shifts, seed):
    """From sums of losses and their numbers [N K+2]: losses, changes from the first, intervals, the null."""
    K, loss, change = len(shifts), total.sum(axis=0) / n.sum(axis=0), total - total[:, :1]
    by_shift, interval = (loss - loss[0])[:K], stats.bootstrap(change[:, :K], n[:, :K]).T
    worst = abs(by_shift).argmax()
    signs = np.random.default_rng(seed).choice([-1, 1], (FLIPS, len(total)))
    dealt = abs(signs @ change[:, :K] / n[:, 0].sum()).max(axis=1)
    return {"losses": loss[:K], "losses_against": loss[K:], "change_interval": interval, "loss": loss[0],
            "worst": by_shift[worst], "worst_null": np.quantile(dealt, 0.95), "worst_at": shifts[worst],
            "worst_interval": interval[worst], "perplexity": np.exp(loss[:K]), "n_predicted": int(n[:, 0].sum()),
            **{f"change_{way}": value - loss[0] for way, value in zip(AGAINST, loss[K:])}}

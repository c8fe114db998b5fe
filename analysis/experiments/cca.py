"""Do positions stay readable in the residual stream from layer to layer?

Canonical correlations between the residual stream and the position table: directions of the stream
that follow directions of the table as closely as can be. They are fitted on half of the documents
and measured on the others, because among many directions some fit any table by chance. Positions
stay readable where nothing overwrites them, whether or not a layer reads them.

The convention: every token of every document is a row, none averaged; special tokens are left out;
the table is its first components over these places; nothing is regularised. Where a stream holds
positions well (deep-roberta) all this hardly matters, except that documents must not be averaged
before the fit. Where it holds few (tiny-roberta, behind layer 0), more documents, special tokens
and correlations of the fit itself all raise them: docs/pages/results.md has the numbers.

A model that adds no table has nothing of its own to compare: its stream is correlated with
sinusoids of the position, a basis. Its input tells no position: asked is in which layers more
of it shows than in a model with random weights.

N documents, T places of ordinary tokens, D width, L layers, K components of the table.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from minitx import positions

from ..contract import Asks, Enough, NotApplicable, Of, options, register, verdict
from ..drawing import Line, When, curves, draw, lines, row, stream_layers
from ..maths import cca as maths
from ..maths import nulls, stats
from ..measures import by_mechanism, document_features, inputs, residual_stream
from ..running.stream import UNSAVED
from ..texts import corpus

USUAL = 12  # components of the table, or as many as there are
FEW = 8  # of the correlations, of which a mean is told too
HIGH = 0.9  # correlation from which a direction holds positions
KEPT = 0.5  # of the first layer's mean correlation, from which a layer keeps positions


def cca(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.Documents = 24,
    tokens: options.Tokens = 0,
    components: options.Count = USUAL,
    shuffles: options.Shuffles = 100,
    seed: options.Seed = 0,
):
    """Canonical correlations between each layer's stream and the position table, on documents that
    they were not fitted to.

    documents: documents to read, the first half to fit, the others to test (0: as many as the text
    holds, at most 100)
    components: principal components of the position table to correlate with
    shuffles: random orders of the places, fitted and tested as the null
    """
    texts = corpus.documents(model, text, documents, tokens)
    inner = texts.ordinary()
    against = by_mechanism.of_model(model, AGAINST)
    table = against.rows(model)[: texts.T][inner]
    most = min(table.shape) - 1
    components = options.fitting("components", components, most, USUAL)
    half = _half(texts, len(table), model.config.d_model, components)
    y = maths.columns(table, components)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(table)) for _ in range(shuffles)]
    result = _by_layer(_gather(model, texts, half, run, "documents"), texts, y, orders)
    random = document_features.random(model, seed)
    y_random = maths.columns(against.rows(random)[: texts.T][inner], components)
    by_random = _gather(random, texts, half, run, "documents: random weights")
    result["correlations_random"] = _by_layer(by_random, texts, y_random, [])["correlations"]
    result |= {"documents": len(texts), "T": texts.T, "components": components}
    result |= {"n_rows": half * len(table), "n_features": model.config.d_model}
    result |= {"against": against.words, "has_table": against.is_table}
    result |= _headline(result)
    return result | (_kept if against.is_table else _follows)(result)


class Against(NamedTuple):
    """What the stream is correlated with."""

    words: str
    is_table: bool  # the model's own, which it reads before layer 0
    rows: Callable  # of a model -> [T D]


SINUSOIDS = Against(  # as wide as the stream: a basis for any smooth signal
    "sinusoids of the position",
    False,
    lambda model: positions.sinusoids(model.config.n_ctx, model.config.d_model),
)
AGAINST = by_mechanism.entries(
    table=Against("the position table", True, inputs.reachable),
    rotary=SINUSOIDS,
    bias=SINUSOIDS,
    terms=SINUSOIDS,
    none=SINUSOIDS,
)


def _by_layer(sums, texts, y, orders):
    """What `_correlate` gives, for all layers together: {name: [L+1 ...]}.

    sums: those of the fit, then those of the test, each [L+1 ...] twice.
    """
    half = len(texts) // 2
    by_layer = []
    for fit_xx, fit_places, test_xx, test_places in zip(*sums):
        fit = maths.moments(half, fit_xx, fit_places)
        test = maths.moments(len(texts) - half, test_xx, test_places)
        by_layer.append(_correlate(fit, test, y, orders))
    return stats.stacked(by_layer)


def _half(documents, T, D, K):
    """How many documents the fit takes; raises NotApplicable if they have too few tokens for it."""
    options.at_least("documents", len(documents), 2)
    half = len(documents) // 2
    if half * T <= D + K:
        least = 2 * ((D + K) // T + 1)
        raise NotApplicable(
            f"--documents: half of {len(documents)} have {half * T} ordinary tokens, and {D} + {K} "
            f"directions fit so few tokens by chance; wanted {least} documents or more"
        )
    return half


def _gather(model, documents, half, run, what):
    """The sums over documents of the fit and of the test, at every layer."""
    inner = documents.ordinary()

    def measure(i, document):
        states = yield residual_stream.states_read(model, document)
        xx, places = maths.sums(states[:, inner])
        part = "fit" if i < half else "test"
        return {f"{part} xx": xx, f"{part} places": places}

    sums = run.gather(measure, documents, what)
    return [sums[name] for name in ("fit xx", "fit places", "test xx", "test places")]


def _correlate(fit, test, y, orders):
    """Correlations [K] of the test, of the fit, and of the test with shuffled positions [n K]."""
    W = maths.whitening(fit)
    fitted = maths.fit(fit, W, y)
    shuffles = [y[order] for order in orders]
    by_chance = [maths.held_out(maths.fit(fit, W, x), test, x) for x in shuffles]
    return {
        "correlations": maths.held_out(fitted, test, y),
        "correlations_fitted": fitted.correlations,
        "correlations_null": np.array(by_chance),
    }


def _headline(r):
    """Means over the directions, and how many are high, by layer."""
    held, by_chance = r["correlations"], r["correlations_null"]  # [L+1 K], [L+1 n K]
    names = [f"before layer {i}" for i in range(len(held) - 1)] + ["output"]
    result = {"layer_names": np.array(names)}
    few = min(FEW, held.shape[-1])
    for name, k in (("mean", held.shape[-1]), ("mean_first", few)):
        result[name] = held[:, :k].mean(axis=1)
        means = by_chance[..., :k].mean(axis=-1)
        result[name + "_null"] = np.quantile(means, nulls.CHANCE, axis=1)
    result["mean_fitted"] = r["correlations_fitted"].mean(axis=1)
    result["high"] = (held >= HIGH).sum(axis=1)
    result["high_null"] = (by_chance >= HIGH).sum(axis=-1).max(axis=1)
    result["mean_random"] = r["correlations_random"].mean(axis=1)
    return result


def _kept(r):
    """Consecutive layers with at least half of the mean correlation before layer 0.

    They exceed chance by the margin, too, unless chance has the half itself: then both count.
    """
    chance = np.maximum(r["mean_null"], r["mean_random"])
    half = KEPT * r["mean"][0]
    exceeds = (r["mean"] > chance + verdict.MARGIN) | (chance >= half)
    keeps = (r["mean"] >= half) & exceeds
    by_chance = np.cumprod(chance[1:] >= half)
    return {"n_kept": np.cumprod(keeps[1:]).sum(), "n_kept_null": by_chance.sum()}


def _follows(r):
    """Layers after which the stream follows the place, of a model whose input tells none."""
    chance = np.maximum(r["mean_null"], r["mean_random"])
    follows = r["mean"] > chance + verdict.MARGIN
    by_chance = r["mean_random"] > r["mean_null"] + verdict.MARGIN
    return {"n_kept": follows[1:].sum(), "n_kept_null": by_chance[1:].sum()}


def layers(r):
    """How many layers may keep positions."""
    return len(r["mean"]) - 1


register(
    cca,
    look="Every line is a layer: how closely the best direction of the stream follows one of the "
    "position table, then the second best, and so on, on documents that took no part in the fit. A "
    "direction at 1 tells the place of any token, whatever the words; the dashed lines are what "
    "places in random order reach. At the right the means: the dotted line is measured on the "
    "documents of the fit itself, where directions fit by chance too. What stays readable has not "
    "been overwritten; that need not be the work of a layer, nor does any layer have to read it.",
    published="In roberta-base 5 to 20 directions of each layer are highly correlated with the "
    "position table, fewer and less so in deeper layers (Yamamoto and Matsuzaki, 4.1.2 and figure "
    "4), on 200 documents that the directions were fitted to.",
    figure="EMNLP, figure 4",
    least_documents=6,
    numbers="""
        mean by layer_names: mean canonical correlation of the stream with the components of the
            position table, on documents that it was not fitted to, by layer
            null: 99% quantile of that mean with the places in random order
        mean_first by layer_names: mean of the first {FEW} canonical correlations, held out, by
            layer
            null: 99% quantile of the mean of the first {FEW}, places in random order
        high by layer_names: directions with a correlation of {HIGH} or more, by layer
            null: the most directions with a correlation of {HIGH} or more, places in random order
        mean_fitted by layer_names: mean correlation on the documents of the fit, by layer
            no null: chance fits as well; what is beside its null is the mean on the others
        n_kept: consecutive layers in which positions stay readable, with at least half of the mean
            correlation before layer 0; without a table layers whose mean exceeds random weights'
            and its null by a tenth
            null: consecutive layers after which the null of the mean correlation is at least half
            of the mean correlation before layer 0; without a table those of random weights
        fact components: principal components of the position table
        fact documents: documents read, half of them for the fit
    """,
    answer=Asks(
        When(
            "has_table",
            "consecutive layers in which positions stay readable: half of the mean correlation of "
            "layer 0's input ({mean[0]:.2f})",
            "layers whose stream follows sinusoids of the position (a basis: no table is added)",
        ),
        value="{n_kept} of {layers}",
        chance="{n_kept_null} of {layers}, random weights or positions shuffled",
        rule=Enough(Of("n_kept", out_of="layers", enough=1), stands=()),
    ),
    says="The canonical correlations between the stream and the first {components} components of "
    "{against}, fitted on half of {documents} documents, are {mean:.2f} on average on the "
    "others, from what layer 0 reads to the output. With positions shuffled 99% stay below "
    "{mean_null:.2f}, and a model with random weights has {mean_random:.2f}. On the documents of "
    "the fit itself they are {mean_fitted:.2f}. Directions with a correlation of {HIGH} or more: "
    "{high}.",
    draw=row(
        curves(
            "correlations",
            null="correlations_null",
            names="layer_names",
            title="dashed, null: positions shuffled, 99% lower",
            xlabel="pair of directions",
            ylabel="correlation, held-out documents",
        ),
        lines(
            Line("mean_fitted", "on the documents of the fit", ":", draw.ORANGE),
            Line("mean", "on the other documents"),
            Line("mean_null", "null: positions shuffled, 99% lower", "--", draw.GREY),
            Line("mean_random", "null: random weights", "-.", draw.VERMILION),
            xticks=stream_layers,
            xlabel="layer that reads the stream",
            ylabel="mean correlation",
            ylim=(-0.05, 1.03),
            legend=draw.STACKED,
        ),
        widths=(1.25, 1),
        height=5,
    ),
    shares_passes=True,
)

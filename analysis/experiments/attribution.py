"""Does the method of integrated gradients agree with ablation, for tokens and for heads?

In each document the log-probability of the likeliest word (of a hidden one, of the next), or class,
is shared out to tokens and to heads: by gradient × input and by integrated gradients, beside what
is lost when a part is taken away. N documents, T tokens, L layers, H heads.
"""

from functools import partial
from typing import Literal

import numpy as np
import scipy

from ..contract import Asks, Every, NotApplicable, Of, options, register
from ..drawing import Bar, bars, draw, figures, row
from ..drawing.maps import Map, Scale, maps
from ..machine.language import filled
from ..maths import nulls, stats
from ..measures import attributions, document_features, outputs
from ..running.stream import UNSAVED
from ..texts import corpus

SHUFFLES = 200  # of the parts of each document
GOOD = 0.5  # correlation with ablation from which gradients tell
PARTS = "tokens", "heads"
LENGTH = 32  # tokens: each is taken away in a pass of its own
ENDINGS = {"integrated": "", "random": "_untrained", "times_input": "_simple"}  # of results
SHOWN = {  # what a part is worth: how it is told, the colour
    "integrated": ("integrated gradients", draw.BLUE),
    "ablated": ("lost without it (ablation)", draw.ORANGE),
    "random": ("null: random weights", draw.GREY),
}
NATS = Scale("nats, mean of documents")
LABEL = "nats of the log-probability of {what}"


def attribution(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    documents: options.TwoDocuments = 8,
    tokens: options.Tokens = 0,
    baseline: Literal["mean", "zero"] = "mean",
    seed: options.Seed = 0,
):
    """Gradient × input and integrated gradients of tokens and heads, beside ablation.

    tokens: length of each document (0: 32, or the model's longest input if that is less)
    baseline: what stands for no word: the mean of all word embeddings, or zeros
    """
    if model.config.task_head not in ("masked", "causal", "sequence", "next_sentence"):
        raise NotApplicable(
            "attribution needs a head that predicts words or classes of a text; this checkpoint's "
            f"head is {model.config.task_head}"
        )
    if model.weights.W_U.shape[1] == 1:
        raise NotApplicable("attribution needs two classes or more; this checkpoint's head has one")
    T = tokens or min(LENGTH, model.config.n_ctx)
    document_set = corpus.documents(model, text, documents, T)
    options.several(document_set)
    random = document_features.untrained(model, np.random.default_rng(seed))
    absent = model.weights.W_E.mean(axis=0) * (baseline == "mean")

    def measure(_, document):
        wanted = attributions.likeliest(model, document)
        return _of(model, random, wanted, absent)

    names = [f"{part}_{way}" for part in PARTS for way in ROWS]
    sums = run.gather(measure, document_set, "documents", keep=(*names, "error"))
    result = {name: sums[name] for name in names} | {"documents": len(document_set)}
    result["error"] = sums["error"].max()
    first = attributions.likeliest(model, document_set.first()[0])
    result["pieces"] = np.array(corpus.labels(model, first.tokens))
    [result["what"]] = outputs.predicted(model, [first.what])
    return result | _agreement(result, seed)


ROWS = "integrated", "times_input", "ablated", "random"


def _of(model, random, wanted, absent):
    """Parts of one document, those of random weights for the same word, the largest error."""
    record, errors = {}, []
    measures = {"tokens": partial(attributions.of_tokens, baseline=absent)}
    measures["heads"] = attributions.of_heads
    for part, measure in measures.items():
        own, other = measure(model, wanted), measure(random, wanted)
        record[f"{part}_random"] = other.integrated
        for way in ROWS[:3]:
            record[f"{part}_{way}"] = getattr(own, way)
        errors += [own.error, other.error]
    return record | {"error": np.array(max(errors))}


def _agreement(result, seed):
    """Rank correlation of each way with ablation, mean over documents, with its interval."""
    record = {}
    for part in PARTS:
        ablated = result[f"{part}_ablated"]
        for way, suffix in ENDINGS.items():
            by_document = [_correlation(*pair) for pair in zip(result[f"{part}_{way}"], ablated)]
            record[f"{part}{suffix}"] = np.mean(by_document)
            if not suffix:
                record[f"{part}_interval"] = stats.interval(by_document).clip(-1, 1)
        record[f"{part}_null"] = _by_chance(result[f"{part}_integrated"], ablated, seed)
    return record


def _by_chance(attributed, ablated, seed):
    """The mean correlation that 99% of draws stay below, parts of a document in random order."""
    rng = np.random.default_rng(seed)
    parts = ablated.reshape(len(ablated), -1)
    means = []
    for _ in range(SHUFFLES):
        pairs = zip(attributed, rng.permuted(parts, axis=1))
        means.append(np.mean([_correlation(a.ravel(), b) for a, b in pairs]))
    return np.quantile(means, nulls.CHANCE)


def _correlation(a, b):
    """Of the ranks of two arrays, which no single large part decides; 0 if one does not vary."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return np.corrcoef(scipy.stats.rankdata(a), scipy.stats.rankdata(b))[0, 1]


def by_part(end=""):
    """The correlations of this `end` for tokens and for heads, or their intervals."""
    return lambda r: np.array([r[part + end] for part in PARTS])


def mean_of(way):
    """What each head adds, mean of all documents [L H]."""
    return lambda r: r[f"heads_{way}"].mean(axis=0)


register(
    attribution,
    about="method",
    look="At the left, how well gradients rank tokens and heads as ablation does. Bars of a token "
    "that agree: the gradient tells what the token is worth. Where they differ, ablation moves one "
    "part alone to its baseline, integrated gradients all parts together. Attention maps show "
    "where a head looks, not whether it matters: compare heads that look sharply with those that "
    "add something.",
    numbers="""
        [tokens|heads]: rank correlation of integrated gradients with ablation over [tokens|heads]
            null: what 99% of draws stay below with a document's [tokens|heads] in random order
        [tokens|heads]_simple: rank correlation of gradient × input with ablation over
            [tokens|heads]
            no null: ranks in random order give what they do beside integrated gradients
        fact tokens_interval by from, to: 95% interval of the first over documents
        fact heads_interval by from, to: 95% interval of that over heads
        fact error: largest |sum of parts - difference of the log-probability| / largest part
        fact documents: documents measured
    """,
    answer=Asks(
        "rank correlation of integrated gradients with ablation: tokens, heads",
        value="{tokens:.2f}, {heads:.2f}",
        chance="{tokens_null:.2f}, {heads_null:.2f}, ranks in random order",
        rule=Every(Of("tokens", enough=GOOD), Of("heads", enough=GOOD)),
    ),
    says="Integrated gradients of {documents} predictions agree with what is lost without each "
    "token by a rank correlation of {tokens:.2f} ({tokens_interval:to .2f}; ranks in "
    "random order {tokens_null:.2f}, random weights {tokens_untrained:.2f}). With what is lost "
    "without each head the correlation is {heads:.2f} (random order {heads_null:.2f}, random "
    "weights {heads_untrained:.2f}). Gradient × input reaches {tokens_simple:.2f} and "
    "{heads_simple:.2f}. The parts add up to the whole: the largest error is {error:.1e} of the "
    "largest part.",
    draw=figures(
        row(
            bars(
                Bar(by_part(), *SHOWN["integrated"], by_part("_interval"), by_part("_null")),
                Bar(by_part("_simple"), "gradient × input", draw.SKY),
                Bar(by_part("_untrained"), *SHOWN["random"]),
                ticks=lambda _: PARTS,
                null="null: random order, 99% lower",
                legend=draw.STACKED,
                ylabel="rank correlation with ablation",
            ),
            bars(
                *(Bar(f"tokens_{way}[0]", *shown) for way, shown in SHOWN.items()),
                ticks="pieces",
                ylabel=lambda r: filled(LABEL, what=f"“{r['what']}”"),
            ),
            widths=(1, 2.2),
            height=4.6,
        ),
        maps(*(Map(mean_of(way), shown[0], NATS) for way, shown in SHOWN.items())),
    ),
    published="Integrated gradients add up to the difference of the output (Sundararajan 2017).",
    least_documents=2,
)

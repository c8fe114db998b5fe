"""Does a downstream task need position embeddings?

A linear probe on frozen features, with positions and without. The task is in the text: where its
documents have labels, the task is to tell the labels; otherwise it is to tell its sentences from
the same words in random order.

N documents, M of them held out, K classes, C versions of the model, F features.
"""

from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from ..contract import Asks, Enough, Every, NotApplicable, Of, Without, options, register, verdict
from ..drawing import When, draw, row
from ..machine.language import filled, label, translated
from ..maths import logistic
from ..measures import document_features
from ..running.stream import UNSAVED
from ..texts import corpus, formats

NAMES = {
    "kept": "positions kept",
    "zero": "positions at zero",
    "shuffled": "positions shuffled",
    "random": "null: random weights",
}
COLORS = dict(zip(NAMES, (draw.BLUE, draw.ORANGE, draw.GREEN, draw.GREY)))
SHUFFLES = 100  # of the training labels
CHANCE = 0.99  # quantile of what they give
LEARNED = 0.02  # accuracy above its null, from which there is a task to compare on
LEAST = 5  # training documents of each class
HELD_OUT = 1 / 3  # share of the documents, where no text for it is given
# the word-order task, where the options do not say: documents, and tokens of each
WINDOWS, WINDOW = 600, 32


def reviews(
    model,
    run=UNSAVED,
    *,
    text: options.Text = "sample",
    test: options.Text = "",
    task: Literal["auto", "labels", "order"] = "auto",
    documents: options.Size = 0,
    tokens: options.Size = 0,
    pool: Literal["mean", "first", "last"] = "mean",
    label: str = "",
    seed: options.Seed = 0,
):
    """A linear probe on features of whole documents: labels, or word order, with positions and
    without.

    text: training text, best with labels: folder with pos/ and neg/, .csv, .jsonl
    test: text of the held-out documents (without: a third of the training text)
    task: labels, order (sentences against the same words in random order), or auto: labels where
    there are any
    documents: of each text (0: all; for order at most 600)
    tokens: the longest document; longer ones are cut (0: the model's longest input; for order
    windows of 32)
    pool: features of a document: mean over its tokens, or those of its first or last token
    label: column of the labels (auto: label)
    """
    if tokens:
        options.within("tokens", tokens, corpus.shortest(model), model.config.n_ctx)
    how = {"column": formats.of(text).column, "label": label}
    texts = [formats.of(name, **how) for name in (text, test) if name]
    task = chosen_task(task, texts)
    load = TASKS[task]
    sources = [load(model, text, documents, tokens, seed) for text in texts]
    names, y, held_out = split(sources, task, seed)
    every_document = Chain([source.documents for source in sources])
    features = document_features.pooled(model, every_document, pool, seed, run)
    unit = "windows" if task == "order" else "documents"
    result = {"task": f"{unit} ({' or '.join(names)})", "classes": np.array(names)}
    result["texts"] = np.array([formats.described(each)["sha256"] for each in texts])
    result["n_cut"] = sum(source.cut for source in sources)
    result["n_skipped"] = sum(source.skipped for source in sources)
    return result | scores(features, y, held_out, seed)


def chosen_task(task, texts):
    """The name of the task; auto: labels where any document, or a column, is for them."""
    if task != "auto":
        return task
    records = (record for text in texts for record in formats.records(text))
    return "labels" if texts[0].label or any(x.label is not None for x in records) else "order"


class Source(NamedTuple):
    """The documents of one text, as the task has them."""

    documents: object  # token arrays [T_i], with a len
    labels: list
    cut: int
    skipped: int


def labelled(model, text, documents, tokens, seed):
    """The labelled documents of a text, cut to `tokens` or to what the model reads.

    Raises ValueError if one has no label.
    """
    texts = corpus.texts(model, text, documents, tokens or model.config.n_ctx)
    lacking = sum(not name for name in texts.labels)
    if lacking:
        where = next(record.where for record in formats.records(text) if not record.label)
        raise ValueError(
            f"{formats.shown(text)}: {lacking} of {len(texts)} documents have no label, {where} "
            "among them; wanted a folder with pos/ and neg/, or a .csv or .jsonl file with --label"
        )
    return Source(texts, texts.labels, texts.cut, sum(texts.skipped.values()))


def ordered(model, text, documents, tokens, seed):
    """Windows of a text, one of each two neighbours in random order.

    So both classes are equally large, and have the same words on average.
    """
    if text.column or text.label:
        raise ValueError("--column and --label need --task labels")
    length = tokens or min(WINDOW, model.config.n_ctx)
    windows = corpus.documents(model, text, documents, length, most=WINDOWS)
    coins = np.random.default_rng(seed).integers(0, 2, -(-len(windows) // 2))
    mixed = np.column_stack([coins, 1 - coins]).ravel()[: len(windows)] == 1
    texts = [windows.shuffled(i, x, seed) if mixed[i] else x for i, x in enumerate(windows)]
    labels = ["shuffled" if x else "in order" for x in mixed]
    return Source(texts, labels, cut=0, skipped=0)


TASKS = {"labels": labelled, "order": ordered}


class Chain:
    """Several sets of documents, one after another."""

    def __init__(self, sets):
        self.sets = sets

    def __len__(self):
        return sum(map(len, self.sets))

    def __iter__(self):
        return chain.from_iterable(self.sets)


def split(sources, task, seed):
    """(names of the classes, class of every document [N], which are held out [N]).

    A second text is held out whole. Without: of labelled documents a random third of each class, of
    windows the last third, so that they come from another part of the text.
    """
    names = _classes(sources)
    y = np.array([names.index(label) for source in sources for label in source.labels])
    if len(sources) > 1:
        held_out = np.arange(len(y)) >= len(sources[0].labels)
    elif task == "order":
        held_out = np.arange(len(y)) >= len(y) - round(HELD_OUT * len(y))
    else:
        held_out = logistic.stratified(y, HELD_OUT, np.random.default_rng(seed))
    counts = np.bincount(y[~held_out], minlength=len(names))
    if counts.min() < LEAST or not held_out.any():
        sizes = ", ".join(f"{n} {name}" for n, name in zip(counts, names))
        raise NotApplicable(
            f"needs at least {LEAST} training documents of each class and one held out; there are "
            f"{sizes} and {held_out.sum()}"
        )
    return names, y, held_out


def _classes(sources):
    """Names of the classes in the training text.

    Raises ValueError for a single class, or if the held-out text has others.
    """
    train, test = sources[0], sources[-1]
    names = sorted(set(train.labels))
    if len(names) < 2:
        raise ValueError(
            f"all {len(train.labels)} documents have the label {names[0]!r}; wanted two classes or "
            "more"
        )
    unknown = sorted(set(test.labels) - set(names))
    if unknown:
        raise ValueError(
            "the held-out text has labels that the training text lacks: "
            f"{', '.join(unknown)}; available: {', '.join(names)}"
        )
    return names


def scores(features, y, held_out, seed):
    """Accuracies on the held-out documents [M], their intervals and nulls.

    features: of each version of the model, {name: [N F]}.
    """
    train, truth = y[~held_out], y[held_out]
    right, strengths = {}, {}  # by version
    for name, x in features.items():
        guess, strengths[name] = logistic.probe(x[~held_out], train, x[held_out], seed=seed)
        right[name] = guess == truth
    x, C = features["kept"], strengths["kept"]
    null = logistic.shuffled(x[~held_out], train, x[held_out], truth, C, SHUFFLES, seed)
    result = {"n_train": len(train), "n_held_out": len(truth), "truth": truth}
    result |= {"n_rows": len(train), "n_features": x.shape[1]}
    result["C"] = np.array([*strengths.values()])
    result["null_accuracies"] = null
    result["accuracy_null"] = np.quantile(null, CHANCE)
    result["majority"] = (truth == np.bincount(train).argmax()).mean()
    return result | _accuracies(right) | _worths(right)


def _accuracies(right):
    """Share of documents that each version classifies correctly, kept first; right: {name: [M]}."""
    result = {"versions": np.array([*right]), "right": np.array([*right.values()])}
    result["accuracies"] = np.array([hits.mean() for hits in right.values()])
    result["intervals"] = np.array([logistic.wilson(hits) for hits in right.values()])
    result["interval"] = logistic.wilson(right["kept"])
    result["accuracy"] = right["kept"].mean()
    for name in [*right][1:]:
        result[f"accuracy_{name}"] = right[name].mean()
    return result


def _worths(right):
    """How much less accurate each other version is than the one with positions kept."""
    kept = right["kept"]
    others = [*right.values()][1:]
    worths = np.array([kept.mean() - hits.mean() for hits in others])
    intervals = np.array([logistic.paired(kept, hits) for hits in others])
    result = {"worths": worths, "worth_intervals": intervals}
    result["worth"], result["worth_shuffled"] = worths[:2]
    result["worth_interval"], result["worth_shuffled_interval"] = intervals[:2]
    return result


def gain(r):
    """Accuracy above what shuffled labels reach."""
    return r["accuracy"] - r["accuracy_null"]


def margin(r):
    """By which accuracy has to fall to count: of what there is to lose."""
    return verdict.MARGIN * gain(r)


def what(r):
    """The task, without the names of many classes."""
    task = str(r["task"])
    return task if len(task) < 80 else task.partition(" ")[0]


def costs(r):
    """What the versions without positions lack, in percentage points."""
    texts = []
    for i, name in enumerate(r["versions"][1:3]):
        low, high = 100 * r["worth_intervals"][i]
        holds_0 = ", which holds 0: no difference is shown"
        ends = {"low": low, "high": high, "doubt": translated(holds_0) if low <= 0 <= high else ""}
        ends |= {"points": 100 * r["worths"][i], "version": label(NAMES[name])}
        template = "{points:+.1f} points against {version} (95%: {low:+.1f} to {high:+.1f}{doubt})"
        texts.append(filled(template, **ends))
    return translated(" and ").join(texts)


def _draw_accuracies(axes, r):
    """Accuracy of each version with its interval, and the nulls."""
    n = len(r["versions"])
    _whiskers(axes, r["versions"], r["accuracies"], r["intervals"])
    axes.plot(r["null_accuracies"], np.full(SHUFFLES, n), "|", color="black")
    axes.axvline(r["majority"], color="black", linestyle="--", linewidth=0.8)
    is_left = r["majority"] < np.mean(axes.get_xlim())
    side = {"xytext": (4 if is_left else -4, 0), "ha": "left" if is_left else "right"}
    axes.annotate(
        "null: always the most frequent class",
        (r["majority"], n + 0.45),
        va="center",
        textcoords="offset points",
        **side,
    )
    labels = [*(NAMES[name] for name in r["versions"]), "null: labels shuffled"]
    axes.set_yticks(range(n + 1), labels)
    axes.set_ylim(n + 0.7, -0.6)
    axes.set_xlabel(f"share classified correctly of {r['n_held_out']} held out (bars: 95%)")


def _draw_worths(axes, r):
    """What each version lacks of the whole model's accuracy, in its row of the other panel."""
    _whiskers(axes, r["versions"][1:], r["worths"], r["worth_intervals"], first=1)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("share classified correctly, kept minus this (bars: 95%)")


def _whiskers(axes, versions, values, intervals, first=0):
    """A dot with its interval for each version, from above; `first`: row of the first."""
    for i, (name, value, interval) in enumerate(zip(versions, values, intervals), first):
        axes.plot(interval, [i, i], color=COLORS[name], linewidth=2)
        axes.plot([value], [i], "o", color=COLORS[name])


register(
    reviews,
    look="Each row is a probe of its own, trained on features of that version of the model: a task "
    "needs positions only where the bars on the right do not reach zero. Random weights show what "
    "the words alone give to any network. Without positions a bidirectional model cannot see the "
    "order of words at all, while a causal one still sees which words came before.",
    published="Not measured: the slides leave it as work that needs training, and expect a task "
    "such as the classification of documents to need positions little.",
    figure="slides, outlook",
    least_documents=3 * LEAST,  # of windows two thirds train, half of them shuffled
    numbers="""
        accuracy: share of held-out documents classified correctly, positions kept
            null: 99% quantile of the share classified correctly with the training labels shuffled
        accuracy_[zero|shuffled]: share classified correctly with the position table[ at zero|'s
            rows shuffled]
            no null: it has that of the share with positions kept
        accuracy_random: share classified correctly with random weights of its shape, positions kept
            no null: it is a null
        [worth|worth_shuffled]: share classified correctly with positions kept minus with positions
            [at zero|shuffled]
            no null: 0 is, and its interval stands beside it
        majority: share classified correctly by always predicting the most frequent class
            no null: it is a null
        fact interval by from, to: 95% interval of the share classified correctly, over held-out
            documents (Wilson)
        fact [worth|worth_shuffled]_interval by from, to: 95% interval of what positions are worth
            against [zero|mixed rows]
        fact n_train: training documents
        fact n_held_out: held-out documents
        fact n_cut: documents that were cut to the length given
        fact n_skipped: documents left out: empty, or of one token
    """,
    answer=Asks(
        "held-out {what} that a linear probe classifies correctly",
        value="{accuracy:.1%} (positions at zero: {accuracy_zero:.1%})",
        chance="{accuracy_null:.1%} at most",
        rule=Enough(
            Every(Of("worth", null=0, margin=margin), Of("worth_shuffled", null=0, margin=margin))
        ),
        without=Without("gain > LEARNED"),
    ),
    says=[
        "Of {n_held_out} held-out {task} the probe classifies {accuracy:.1%} correctly with "
        "positions kept (95%: {interval[0]:.1%} to {interval[1]:.1%}), {accuracy_zero:.1%} with "
        "positions at zero, and at most {accuracy_null:.1%} in 99 of 100 cases with the training "
        "labels shuffled. With positions shuffled it is {accuracy_shuffled:.1%}, with random "
        "weights {accuracy_random:.1%}. ",
        When(
            "accuracy > accuracy_null",
            "Positions are worth {costs}.",
            "That is no better than shuffled labels: this task says nothing about positions here.",
        ),
    ],
    draw=row(_draw_accuracies, _draw_worths, widths=(1.4, 1), height=4, sharey=True),
)

"""What positions are worth to a task: a linear probe on frozen features, with positions and without.

The task is in the text: where its documents have labels, to tell these; else to tell its sentences from the same words
in random order. N documents, M of them held out, K classes, C versions of the model. Order: the picture, the
experiment, its tasks, its scores.
"""

from itertools import chain
from typing import NamedTuple

import numpy as np

from .. import corpus, data, draw, features, logistic
from ..registry import Unfit, experiment

NAMES = {"kept": "positions kept", "zero": "positions at zero", "shuffled": "positions shuffled",
         "random": "null: random weights"}
COLORS = dict(zip(NAMES, (draw.BLUE, draw.ORANGE, draw.GREEN, draw.GREY)))
SHUFFLES = 20            # of the training labels
LEAST = 5                # training documents of each class
HELD_OUT = 1 / 3         # share of the documents, where no text for it is given
WINDOWS, WINDOW = 600, 32  # documents of the word-order task, and their tokens, where not given


def plot(r):
    """Accuracies with their intervals on the left; on the right what each version lacks of the whole model's."""
    figure = draw.figure(10, 3.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.4, 1))
    n = len(r["versions"])
    _whiskers(left, r["versions"], r["accuracies"], r["intervals"])
    left.plot(r["null_accuracies"], np.full(SHUFFLES, n), "|", color="black")
    left.axvline(r["majority"], color="black", linestyle="--", linewidth=0.8)
    left.annotate("null: always the most frequent class", (r["majority"], n + 0.45), fontsize=7.5, va="center",
                  xytext=(4, 0), textcoords="offset points")
    left.set_yticks(range(n + 1), [*(NAMES[name] for name in r["versions"]), "null: labels shuffled"])
    left.set(ylim=(n + 0.7, -0.6), xlabel=f"share told right of {r['n_held_out']} held out (bars: 95 %)")
    _whiskers(right, r["versions"][1:], r["worths"], r["worth_intervals"])
    right.axvline(0, color="black", linewidth=0.8)
    right.set_yticks(range(n - 1), [NAMES[name] for name in r["versions"][1:]])
    right.set(ylim=(n - 1.4, -0.6), xlabel="share told right, kept minus this (bars: 95 %)")
    return figure


def _whiskers(axes, versions, values, intervals):
    """A dot with its interval for each version, from above."""
    for i, (name, value, interval) in enumerate(zip(versions, values, intervals)):
        axes.plot(interval, [i, i], color=COLORS[name], linewidth=2)
        axes.plot([value], [i], "o", color=COLORS[name])


def says(r):
    """What the numbers show, in plain words."""
    shares = dict(zip(r["versions"], (f"{100 * x:.1f} %" for x in r["accuracies"])))
    low, high = 100 * r["interval"]
    text = (f"Of {r['n_held_out']} held-out {r['task']} the probe tells right {shares['kept']} with positions kept "
            f"(95 %: {low:.1f} to {high:.1f}), {shares['zero']} with positions at zero, {shares['shuffled']} with "
            f"positions shuffled, {shares['random']} with random weights, and at most {100 * r['accuracy_null']:.1f} % "
            "in 19 of 20 cases with the training labels shuffled.")
    if r["accuracy"] <= r["accuracy_null"]:
        return text + " That is no better than shuffled labels: this task says nothing about positions here."
    worths = [f"{100 * worth:+.1f} points against {NAMES[name]} (95 %: {100 * low:+.1f} to {100 * high:+.1f}"
              f"{', which holds 0: no difference is shown' if low <= 0 <= high else ''})"
              for name, worth, (low, high) in zip(r["versions"][1:3], r["worths"], r["worth_intervals"])]
    return f"{text} Positions are worth {' and '.join(worths)}."


@experiment(
    asks="How much do position embeddings matter for a downstream task?",
    draw=plot,
    look="Each row is a probe of its own, trained on features of that version of the model: a task needs positions "
         "only where the bars on the right stay off zero. Random weights show what the words alone give to any "
         "network. Without positions a bidirectional model cannot see the order of words at all, while a causal one "
         "still sees which words came before.",
    published="Not measured: the slides leave it as work that needs training, and expect a task such as the "
              "classification of documents to need positions little.",
    figure="slides, outlook",
    says=says,
    numbers={
        "accuracy": "share of held-out documents told right, positions kept",
        "accuracy_null": "95 % quantile of the same with the training labels shuffled",
        "interval": "95 % interval of the accuracy, over held-out documents (Wilson)",
        "accuracy_zero": "accuracy with the position table at zero",
        "accuracy_shuffled": "accuracy with the position table's rows shuffled",
        "accuracy_random": "accuracy with random weights of the same shape, positions kept",
        "majority": "accuracy of always saying the most frequent class",
        "worth": "accuracy with positions kept minus with positions at zero",
        "worth_interval": "its 95 % interval, from the same held-out documents",
        "worth_shuffled": "accuracy with positions kept minus with positions shuffled",
        "worth_shuffled_interval": "its 95 % interval",
        "n_train": "training documents",
        "n_held_out": "held-out documents",
        "n_cut": "documents that were cut to the length given",
        "n_skipped": "documents left out: empty, or of one token"})
def reviews(model, *, text: str = "sample", test: str = "", task: str = "auto", documents: int = 0, tokens: int = 0,
            pool: str = "mean", column: str = "", label: str = "", seed: int = 0):
    """A linear probe on features of whole documents: labels, or word order, with positions and without.

    text: training text, best with labels: folder with pos/ and neg/, .csv, .jsonl; or any other text, - or sample
    test: text of the held-out documents (without: a third of the training text)
    task: labels, order (sentences against the same words in random order), or auto: labels where there are any
    documents: of each text (0: all; for order at most 600)
    tokens: the longest document; longer ones are cut (0: the model's longest input; for order windows of 32)
    pool: features of a document: mean over its tokens, or those of its first or last token
    column: column of the text in a .csv or .jsonl file (auto: text)
    label: column of the labels (auto: label)
    seed: seed of splits, shuffles and random weights
    """
    if tokens:
        corpus.within("tokens", tokens, corpus.shortest(model), model.config.n_ctx)
    given = [source for source in (text, test) if source]
    task = chosen_task(task, given, column, label)
    sources = [TASKS[task](model, source, documents, tokens, column, label, seed) for source in given]
    names, y, held_out = split(sources, task, seed)
    found = features.of(model, Chain([source.documents for source in sources]), pool, seed)
    about = {"task": f"{'windows' if task == 'order' else 'documents'} ({' or '.join(names)})",
             "classes": np.array(names), "n_cut": sum(source.cut for source in sources),
             "texts": np.array([data.described(source)["sha256"] for source in given]),
             "n_skipped": sum(source.skipped for source in sources)}
    return about | scores(found, y, held_out, seed)


class Source(NamedTuple):
    """The documents of one text, as the task has them."""
    documents: object  # token arrays [T_i], with a len
    labels: list
    cut: int
    skipped: int


class Chain:
    """Several lots of documents, one after another."""

    def __init__(self, lots):
        self.lots = lots

    def __len__(self):
        return sum(map(len, self.lots))

    def __iter__(self):
        return chain.from_iterable(self.lots)


class Mixed:
    """Documents of which some have their ordinary tokens in random order; mixed: which [N]."""

    def __init__(self, read, mixed, seed):
        self.read, self.mixed, self.seed = read, mixed, seed

    def __len__(self):
        return len(self.read)

    def __iter__(self):
        for i, document in enumerate(self.read):
            yield self.read.shuffled(i, document, self.seed) if self.mixed[i] else document


def labelled(model, text, documents, tokens, column, label, seed):
    """The labelled documents of a text, cut to `tokens` or to what the model reads; ValueError where a label lacks."""
    found = corpus.texts(model, text, documents, tokens or model.config.n_ctx, column, label)
    if lacking := sum(not one for one in found.labels):
        where = next(record.where for record in data.records(text, column, label) if not record.label)
        raise ValueError(f"{text!r}: {lacking} of {len(found)} documents have no label, {where} among them; wanted a "
                         "folder with pos/ and neg/, or a .csv or .jsonl file with --label")
    return Source(found, found.labels, found.cut, sum(found.skipped.values()))


def ordered(model, text, documents, tokens, column, label, seed):
    """Windows of a text, of every two one in random order: as many of each class, the same words in both on average."""
    if column or label:
        raise ValueError("--column and --label go with --task labels")
    read = corpus.documents(model, text, documents, tokens or min(WINDOW, model.config.n_ctx), most=WINDOWS)
    coins = np.random.default_rng(seed).integers(0, 2, -(-len(read) // 2))
    mixed = np.column_stack([coins, 1 - coins]).ravel()[:len(read)] == 1
    return Source(Mixed(read, mixed, seed), ["shuffled" if one else "in order" for one in mixed], 0, 0)


TASKS = {"labels": labelled, "order": ordered}


def chosen_task(task, given, column, label):
    """The name of the task; auto: labels where any document, or a column, is for them."""
    if task not in (*TASKS, "auto"):
        raise ValueError(f"--task is {task!r}; there are: {', '.join(TASKS)}, auto")
    if task != "auto":
        return task
    there = (one.label is not None for text in given for one in data.records(text, column))
    return "labels" if label or any(there) else "order"


def split(sources, task, seed):
    """(names of the classes, class of every document [N], which are held out [N]).

    A second text is held out whole. Without: of labelled documents a random third of each class, of windows the last
    third, so that they come from another part of the text.
    """
    names = sorted(set(sources[0].labels))
    if len(names) < 2:
        raise ValueError(f"all {len(sources[0].labels)} documents have the label {names[0]!r}; wanted two classes or "
                         "more")
    if unknown := sorted(set(sources[-1].labels) - set(names)):
        raise ValueError(f"the held-out text has labels that the training text lacks: {', '.join(unknown)}; there are: "
                         f"{', '.join(names)}")
    y = np.array([names.index(label) for source in sources for label in source.labels])
    if len(sources) > 1:
        held_out = np.arange(len(y)) >= len(sources[0].labels)
    elif task == "order":
        held_out = np.arange(len(y)) >= len(y) - round(HELD_OUT * len(y))
    else:
        held_out = logistic.stratified(y, HELD_OUT, np.random.default_rng(seed))
    counts = np.bincount(y[~held_out], minlength=len(names))
    if counts.min() < LEAST or not held_out.any():
        raise Unfit(f"needs at least {LEAST} training documents of each class and one held out; there are "
                    f"{', '.join(f'{n} {name}' for n, name in zip(counts, names))} and {held_out.sum()}")
    return names, y, held_out


def scores(found, y, held_out, seed):
    """Accuracies on the held-out documents [M] from the features of each version, their intervals and nulls."""
    train, truth = y[~held_out], y[held_out]
    parts = {name: (x[~held_out], x[held_out]) for name, x in found.items()}
    probes = {name: logistic.probe(x, train, rest, seed=seed) for name, (x, rest) in parts.items()}
    right = {name: guess == truth for name, (guess, _) in probes.items()}
    strength = {name: C for name, (_, C) in probes.items()}
    x, rest = parts["kept"]
    null = logistic.shuffled(x, train, rest, truth, strength["kept"], SHUFFLES, seed)
    others = [*right][1:]
    worths = np.array([right["kept"].mean() - right[name].mean() for name in others])
    intervals = np.array([logistic.paired(right["kept"], right[name]) for name in others])
    return {
        "versions": np.array([*right]), "accuracies": np.array([one.mean() for one in right.values()]),
        "intervals": np.array([logistic.wilson(one) for one in right.values()]), "C": np.array([*strength.values()]),
        "right": np.array([*right.values()]), "truth": truth, "accuracy": right["kept"].mean(),
        "interval": logistic.wilson(right["kept"]), "null_accuracies": null, "accuracy_null": np.quantile(null, 0.95),
        "majority": (truth == np.bincount(train).argmax()).mean(),
        "worths": worths, "worth_intervals": intervals, "worth": worths[0], "worth_interval": intervals[0],
        "worth_shuffled": worths[1], "worth_shuffled_interval": intervals[1], "n_train": len(train),
        "n_held_out": len(truth)} | {f"accuracy_{name}": right[name].mean() for name in others}

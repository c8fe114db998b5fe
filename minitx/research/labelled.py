"""Labels of texts, or of their tokens, and which texts fit, choose a penalty, or are held out."""

from os import PathLike

import numpy as np

HELD_OUT = 0.25  # share of the texts of each class
LONGEST = 1000  # letters of a label
LEAST = 4  # texts of each class: one is held out, one chooses the penalty


def of_file(texts, labels):
    """Texts and labels of a table's file, whose column `labels` names; lists as they are."""
    if not isinstance(texts, str | PathLike):
        return texts, labels
    from ..analysis.texts import formats

    if labels is not None and not isinstance(labels, str):
        text = f"texts are the file {str(texts)!r:.80}"
        raise ValueError(f"{text}; expected labels to be the name of its column")
    return of_table(formats.of(texts, label=labels or ""))


def of_table(named):
    """Texts and labels of a table that analysis.texts.formats names."""
    from ..analysis.texts import formats

    records = [*formats.records(named)]
    for record in records:
        if not record.label:
            text = f"{record.where} has no label; expected one for each text"
            raise ValueError(f"{text}, in the column label, or in that which --label names")
    return [record.text for record in records], [record.label for record in records]


def read_labels(labels, n, token):
    """The classes in order, the number of each label's, and whether each token has a label.

    n: tokens of each text. Raises ValueError for labels that do not fit them.
    """
    if not np.iterable(labels):
        raise ValueError(f"labels are {labels!r:.80}; expected one for each text")
    labels = [label.tolist() if hasattr(label, "tolist") else label for label in labels]
    if len(labels) != len(n):
        raise ValueError(f"{len(labels)} labels for {len(n)} texts; expected one for each")
    is_by_token = isinstance(labels[0], list | tuple)
    if is_by_token and token != "each":
        raise ValueError(f"labels of tokens, and token is {token!r}; expected token='each'")
    every = labels
    if is_by_token:
        check_labels_of_tokens(labels, n)
        every = [label for row in labels for label in row]
    kinds = {type(label) for label in every}
    if len(kinds) > 1 or not kinds <= {str, int, bool}:
        text = f"labels are {', '.join(sorted(kind.__name__ for kind in kinds))}"
        raise ValueError(f"{text}; expected words, or whole numbers of classes")
    longest = max(map(len, every)) if kinds == {str} else 0
    if longest > LONGEST:
        raise ValueError(f"a label has {longest} letters; expected words of at most {LONGEST}")
    classes = sorted(set(every))
    number = {name: i for i, name in enumerate(classes)}
    numbers = np.array([number[label] for label in every])
    if len(classes) < 2:
        raise ValueError(f"all labels are {every[0]!r}; expected two classes or more")
    if is_by_token:
        numbers = np.split(numbers, np.cumsum(n)[:-1])
    return classes, numbers, is_by_token


def check_labels_of_tokens(labels, n):
    """Raises ValueError unless each text has a label for each token."""
    for i, (row, tokens) in enumerate(zip(labels, n)):
        given = len(row) if isinstance(row, list | tuple) else 1
        if given != tokens:
            text = f"text {i} has {tokens} tokens, special ones included, and {given} labels"
            raise ValueError(f"{text}; expected one for each token")


def split(batches, y, is_by_token, rng, classes):  # -> [texts]
    """0 for texts that are fitted to, 1 for those that choose the penalty, 2 for those held out.

    Equal texts are on the same side, each class is on all. Raises ValueError for too few texts.
    """
    from ..analysis.maths import logistic

    keys = [batch.tokens.tobytes() for batch in batches]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    members = [np.unique(y[i]) for i in first]  # the classes of each different text
    counts = np.bincount(np.concatenate(members), minlength=len(classes))
    if counts.min() < LEAST:
        i = counts.argmin()
        text = f"class {classes[i]!r} has {counts[i]} different texts"
        raise ValueError(f"{text}; expected {LEAST} or more of each class")
    strata = np.zeros(len(first), int) if is_by_token else y[first]
    side = np.where(logistic.stratified(strata, HELD_OUT, rng), 2, 0)
    train = np.flatnonzero(side == 0)
    side[train[logistic.stratified(strata[train], HELD_OUT, rng)]] = 1
    for i, name in enumerate(classes):
        if not any(i in members[j] for j in np.flatnonzero(side == 0)):
            text = f"class {name!r} is in {counts[i]} texts, none of which fell to the fit"
            raise ValueError(f"{text}; expected more of them, or another seed")
    return side[group]

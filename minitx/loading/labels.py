"""What the classes of a head are called: by config.json's id2label, else "class 0".

Labels are text that came with the file: each is one printable line of at most LONGEST letters.
"""

import re

import numpy as np

from ..heads import HEADS, of_classes
from .files import one_line

MOST, LONGEST = 10_000, 80
NUMBERED = re.compile(r"LABEL_\d+")  # what the reference library writes where nobody named them


def labels_of(settings):
    """The label of each class in a config.json; () unless every class has one of its own making.

    >>> labels_of({"id2label": {"1": "positive", "0": "negative"}})
    ('negative', 'positive')
    >>> labels_of({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}})
    ()
    """
    given = settings.get("id2label")
    if not isinstance(given, dict) or len(given) > MOST:
        return ()
    labels = [given.get(str(i)) for i in range(len(given))]
    is_text = all(isinstance(label, str) for label in labels)
    if not is_text or all(map(NUMBERED.fullmatch, labels)):
        return ()
    return tuple(
        one_line(label, LONGEST) if label.strip() else f"class {i}"
        for i, label in enumerate(labels)
    )


def fitting(config, W_U):
    """The labels of a head's classes: those of every such head, or of the file if it has as many.

    () where classes have no more than numbers.
    """
    if not of_classes(config.task_head):
        return ()
    labels = HEADS[config.task_head].classes or config.labels
    return labels if W_U is not None and W_U.shape[-1] == len(labels) else ()


def predicted(model, ids):
    """What is predicted, as text: pieces of tokens, or names of classes."""
    if not of_classes(model.config.task_head):
        return model.tokenizer.pieces(ids)
    labels = model.config.labels
    return [labels[i] if labels else f"class {i}" for i in np.ravel(ids)]


def class_number(model, name):
    """The number of the class of a name. Raises ValueError unless exactly one has it."""
    names = predicted(model, range(model.weights.W_U.shape[1]))
    if names.count(name) != 1:
        text = f"{names.count(name)} classes are called {name!r:.80}; wanted one of"
        raise ValueError(f"{text} {one_line(', '.join(names))}")
    return names.index(name)

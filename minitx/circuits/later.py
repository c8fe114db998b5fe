"""Passes that begin at the layer of their first edit, and end in the logits that are asked for.

All that comes before is as in a base run. N texts.
"""

import numpy as np

from ..heads import is_pooled
from ..machine.progress import step
from ..model import Start, forward, logits
from .measure import Difference, with_tokens


class Later:
    """The measure of changed runs of a model; of two logits only these are computed."""

    def __init__(self, model, number):
        self.model, self.number = model, number
        self.asked, self.is_narrow = model, False
        if isinstance(number, Difference):
            self.asked, self.number = _with_asked_tokens(model, number)
            self.is_narrow = not is_pooled(model.config.task_head)

    def values(self, texts, rows, layer, trace, edits):  # -> [N]
        """The measure of texts in runs with edits {point: f(x) -> x}, none before a layer.

        rows [N]: the text of the trace that each of these is. layer None: the whole pass.
        """

        def hook(name, x, layer=None):
            edit = edits.get((name, layer))
            return x if edit is None else edit(x)

        model = self.model
        start = None
        if layer and model.encoder is None:
            start = Start(layer, trace["resid_pre", layer][rows])
        options = texts.options()
        x = forward(model, texts.batch.tokens, **options, start=start, hook=hook)
        return self.of_stream(x, rows, texts.head_tokens(self.model))

    def of_stream(self, x, rows, asked_at):  # [N T D] -> [N]
        """The measure of a last stream; of each copy of the trace's texts by itself."""
        n_copies = len(rows) // (rows.max() + 1)
        step(n_copies)
        number = self.number.rows(rows)
        if self.is_narrow:
            x = x[np.arange(len(x)), number.places][:, None]
            number = number._replace(places=np.zeros_like(number.places))
        y = logits(self.asked, x, valid=asked_at)
        if isinstance(number, Difference):
            return number.values(y)
        return np.concatenate([number.values(copy) for copy in np.split(y, n_copies)])


def _with_asked_tokens(model, number):
    """The model with the columns of its vocabulary that are asked for, and the measure there."""
    others = None
    asked = number.ids
    if number.others is not None:
        asked = np.append(asked, number.others)
    used = np.unique(asked)
    ids = np.searchsorted(used, number.ids)
    if number.others is not None:
        others = np.searchsorted(used, number.others)
    return with_tokens(model, used), number._replace(ids=ids, others=others)

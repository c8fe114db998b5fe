"""A training in stages: from one to the next inputs grow longer, and layers are added.

Every stage has a model and rows of the text of its own, and begins with what the one before it has
learned: arrays, and running means of gradients. A new layer is a copy of an old one; all layers
then write less, so that they write together about as much as the old ones did.
"""

from typing import NamedTuple

import numpy as np

from .batches import Words
from .loop import MATRICES, REST, Loop
from .start import WRITERS, start

SCALED = *WRITERS, "b_O", "b_out"  # all that a layer writes to the stream


class Stage(NamedTuple):
    """What one stage has for itself."""

    steps: int
    context: int
    batch: int
    rate: float  # at its end; it goes there in a line from that of the stage before
    config: dict  # settings of config.json that differ from those of the whole training


class Staged(Loop):
    """A Loop whose model grows from stage to stage. `.how.steps`: of all stages together."""

    def __init__(self, stages, settings, text, how):
        """Raises ValueError where a stage cannot begin with what the one before it has learned."""
        self.stages, self.settings, self.text, self.whole = stages, settings, text, how
        self.losses = []
        after = None
        for number in reversed(range(len(stages))):
            self.enter(number)
            if after is not None:
                grown(self.start.arrays, after.arrays, f"stage {number + 2}")
            after = self.start

    def enter(self, number):
        """The model of a stage as it is drawn, and the text as it reads it."""
        stage, losses = self.stages[number], self.losses
        how = self.whole._replace(context=stage.context, batch=stage.batch)
        super().__init__(self.drawn(stage), self.rows(stage), how)
        self.number, self.losses = number, losses

    def drawn(self, stage):
        """The Start of a stage."""
        return start(self.settings | stage.config, self.whole.seed, self.whole.dtype)

    def rows(self, stage):
        """What gives the batches of a stage."""
        return Words(self.text, stage.context, self.whole.masked, self.whole.span)

    def place(self, done):
        """The model has the arrays that it had after so many steps, though not their values."""
        self.enter(self.number_of(max(0, done - 1)))

    def number_of(self, step):
        """The stage of a step."""
        ends = np.cumsum([stage.steps for stage in self.stages])
        return int(np.searchsorted(ends, step, side="right"))

    def step(self):
        """One step, of the next stage where one has ended."""
        number = self.number_of(self.done)
        if number != self.number:
            self.grow(number)
        super().step()

    def grow(self, number):
        """Enter a stage with what was learned before it."""
        old, means, done = self.start, self.optimizer, self.done
        self.enter(number)
        arrays = self.start.arrays
        n_new, n_old = n_layers(arrays), n_layers(old.arrays)
        for key, (of, rows) in grown(old.arrays, arrays, f"stage {number + 1}").items():
            arrays[key][:rows] = old.arrays[of]
            if key[0] in SCALED:
                arrays[key] *= n_old / n_new
            for mine, other in (
                (self.optimizer.first, means.first),
                (self.optimizer.second, means.second),
            ):
                keyed(arrays, mine)[key][:rows] = keyed(old.arrays, other)[of]
        self.optimizer.steps = done

    def rate(self):
        """In a line to each stage's own, after a warm-up."""
        stage, how = self.stages[self.number], self.whole
        before = self.stages[self.number - 1].rate if self.number else how.rate
        begin = sum(earlier.steps for earlier in self.stages[: self.number])
        now = before + (stage.rate - before) * (self.done - begin) / stage.steps
        rising = max(1, round(how.warm_up * how.steps))
        return now * min(1, (self.done + 1) / rising)


def n_layers(arrays):
    """The number of layers among arrays by name, or (name, layer)."""
    return 1 + max(key[1] for key in arrays if isinstance(key, tuple))


def grown(old, new, stage):
    """{key: (key of what it begins with, its rows)} of arrays that are not as they were drawn.

    Raises ValueError for arrays of other shapes; only a position table may have more rows.
    """
    n_old, pairs = n_layers(old), {}
    for key, x in new.items():
        of = key if isinstance(key, str) else (key[0], key[1] % n_old)
        if of not in old:
            continue
        was = old[of].shape
        may_grow = key == "W_pos" and was[1:] == x.shape[1:] and was[0] <= len(x)
        if was != x.shape and not may_grow:
            raise ValueError(
                f"{stage}: {of} is {[*was]} before it and {[*x.shape]} in it; layers and "
                "position rows can be added, nothing else"
            )
        pairs[key] = of, was[0]
    if n_layers(new) < n_old:
        raise ValueError(f"{stage}: {n_layers(new)} layers; the stage before it has {n_old}")
    return pairs


def keyed(arrays, means):
    """{key: view} of running means that lie in two vectors, matrices and the rest."""
    views, begin = {}, {MATRICES: 0, REST: 0}
    for key, x in arrays.items():
        part = MATRICES if x.ndim > 1 else REST
        end = begin[part] + x.size
        views[key] = means[part][begin[part] : end].reshape(x.shape)
        begin[part] = end
    return views

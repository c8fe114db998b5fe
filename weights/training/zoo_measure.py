"""What the cards of the zoo say: loss, loss against length, where heads look; no claim, numbers.

Measured in float32, from the folder that train_zoo.py wrote. Loss against length: one text, cut
into windows of each length; what is compared are the tokens that are predicted at both lengths, and
the interval is from drawing stretches of the text again. A table has no row beyond the trained
length: a sinusoidal one is computed further, a learned one asked with its rows again from the start
(`again`), and with rows as training adds them (`fresh`).
"""

from dataclasses import replace

import numpy as np

import minitx
from minitx.learning.parameters import parameters, with_arrays
from minitx.learning.tokens import mask_of
from minitx.weights.training.recipe import FRESH, is_masked, waves

MASK = 0.15  # of the tokens of a text, the same at every length
STRETCH = 1024  # tokens that an interval draws together
DRAWS, REACH, HEAVY = 1000, 10, 0.3
BATCH = 2048  # tokens a pass


class Zoo:
    """A folder of the zoo, whose inputs may be of any length; place: how one enters."""

    def __init__(self, folder, place):
        self.place = place
        self.model = self.loaded = minitx.load(folder)
        self.masked = is_masked(self.model.config)
        self.mask_id = mask_of(self.model.tokenizer, self.masked)
        self.trained = self.model.config.n_ctx

    def lengthen(self, n, how):
        """Give the position table rows for inputs of n tokens, if it has too few."""
        config, arrays = self.loaded.config, parameters(self.loaded)
        longer = replace(config, n_ctx=n)
        if config.n_pos:
            rows = self.rows(arrays["W_pos"][config.offset :], n, how)
            arrays["W_pos"] = np.concatenate([arrays["W_pos"][: config.offset], rows])
            longer = replace(longer, n_pos=len(arrays["W_pos"]))
        self.model = replace(with_arrays(self.loaded, arrays, ""), config=longer)

    def rows(self, table, n, how):
        """n rows that begin with those of a table."""
        kept, D = table[:n], table.shape[1]
        if self.place == "sinusoidal":
            more = waves(n, D)[len(kept) :]
        elif how == "fresh":
            more = FRESH * np.random.default_rng(0).standard_normal((n - len(kept), D))
        else:
            more = kept[np.arange(n - len(kept)) % len(kept)]
        return np.concatenate([kept, more.astype(np.float32)])

    def encode(self, text):
        """Ids of the text, without special tokens."""
        return self.model.tokenizer.encode(text, special=False)

    def logits(self, ids):
        """Of ids [B T]: [B T V]."""
        return minitx.logits(self.model, minitx.forward(self.model, ids))

    def losses(self, ids, n):
        """Loss in nats of each token of a text, nan where it was not predicted, in windows of n."""
        return self._masked(ids, n) if self.masked else self._causal(ids, n)

    def _causal(self, ids, n):
        losses = np.full(len(ids), np.nan, np.float32)
        for starts in batches(len(ids), n, n):
            indices = starts[:, None] + np.arange(n)
            logits = self.logits(ids[indices])[:, :-1]
            losses[indices[:, 1:]] = cross_entropy(logits, ids[indices[:, 1:]])
        return losses

    def _masked(self, ids, n):
        masked = np.random.default_rng(0).random(len(ids)) < MASK
        losses = np.full(len(ids), np.nan, np.float32)
        for starts in batches(len(ids), n - 2, n - 2):
            indices = starts[:, None] + np.arange(n - 2)
            inputs = np.where(masked[indices], self.mask_id, ids[indices])
            logits = self.logits(framed(inputs))[:, 1:-1]
            losses[indices] = np.where(masked[indices], cross_entropy(logits, ids[indices]), np.nan)
        return losses

    def looks(self, ids, documents=100):
        """Mean attention [L H 2 REACH + 1] at each offset, over inputs of the trained length."""
        self.lengthen(self.trained, "")
        n = self.trained - 2 * self.masked
        indices = np.arange(min(documents, len(ids) // n))[:, None] * n + np.arange(n)
        inputs = framed(ids[indices]) if self.masked else ids[indices]
        patterns = minitx.run(self.model, inputs, keep="pattern").stack("pattern")  # [L B H T T]
        offsets = range(-REACH, REACH + 1)
        means = [np.diagonal(patterns, o, -2, -1).mean(axis=(1, -1)) for o in offsets]
        return np.stack(means, axis=-1)


def framed(ids):
    """Rows [B T] between <s> and </s>."""
    return np.pad(ids, ((0, 0), (1, 1)), constant_values=((0, 0), (0, 2)))


def batches(length, n, step):
    """Starts of windows of n tokens in groups of about BATCH tokens."""
    starts = np.arange(0, length - n + 1, step)
    size = max(1, BATCH // n)
    return np.split(starts, range(size, len(starts), size))


def cross_entropy(logits, ids):
    """Nats [B T] of the ids [B T] by logits [B T V]."""
    highest = logits.max(axis=-1)
    of_ids = np.take_along_axis(logits, ids[..., None], axis=-1)[..., 0]
    return highest - of_ids + np.log(np.exp(logits - highest[..., None]).sum(axis=-1))


def compared(losses, base, seed=0):
    """Mean of losses minus base where both were predicted, and its interval of 95 %."""
    difference = losses - base
    n = len(difference) // STRETCH * STRETCH
    stretches = difference[:n].reshape(-1, STRETCH)
    sums, counts = np.nansum(stretches, 1), np.isfinite(stretches).sum(1)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(sums), (DRAWS, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    return np.array([sums.sum() / counts.sum(), *np.quantile(means, (0.025, 0.975))])


def against_length(zoo, ids, how, factors=(0.5, 1, 2, 4)):
    """{length: (mean loss, difference to the trained length, low, high)}."""
    curves = {}
    for factor in factors:
        n = int(factor * zoo.trained)
        zoo.lengthen(n, how)
        curves[n] = zoo.losses(ids, n)
    base = curves[zoo.trained]
    return {n: (np.nanmean(curve), *compared(curve, base)) for n, curve in curves.items()}


def sharp(looks):
    """[(head, offset, attention)] of the heads that give more than HEAVY to one offset, not 0."""
    heads = []
    for layer, head in np.ndindex(looks.shape[:2]):
        row = looks[layer, head].copy()
        row[REACH] = 0
        best = row.argmax()
        if row[best] > HEAVY:
            heads.append((f"L{layer}H{head}", int(best) - REACH, float(row[best])))
    return heads

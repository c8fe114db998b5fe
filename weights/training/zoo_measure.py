"""What the cards of the zoo say: loss, loss against length, where heads look; no claim, numbers.

Measured with the reference library, in float32, from the folder that train_zoo.py wrote. Loss
against length: one text, cut into windows of each length; what is compared are the tokens that are
predicted at both lengths, and the interval is from drawing stretches of the text again. A table
has no row beyond the trained length: a sinusoidal one is computed further, a learned one asked
with its rows again from the start (`again`), and with rows as training adds them (`fresh`).
"""

import numpy as np
from tokenizers import Tokenizer

from minitx.weights.training import models, places, train
from minitx.weights.training.torches import F, torch

MASK = 0.15  # of the tokens of a text, the same at every length
STRETCH = 1024  # tokens that an interval draws together
DRAWS, REACH, HEAVY = 1000, 10, 0.3
BATCH = 2048  # tokens a pass


class Zoo:
    """A folder of the zoo as the reference library loads it, whose inputs may be of any length."""

    def __init__(self, folder, recipe):
        from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

        self.recipe = recipe
        self.causal = recipe.family == "gpt2"
        kind = AutoModelForCausalLM if self.causal else AutoModelForMaskedLM
        settings = {"dtype": torch.float32, "attn_implementation": "eager"}
        self.model = kind.from_pretrained(folder, **settings).eval()
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.trained = recipe.stages[-1][0]
        table = self._table()
        self.rows = None if table is None else table.weight.data.clone()

    def _table(self):
        """The module of the position table, if this family has one."""
        for name, module in self.model.named_modules():
            if name.endswith((".wpe", ".position_embeddings")):
                return module
        return None

    def lengthen(self, n, how):
        """Give the position table rows for inputs of n tokens, if it has too few."""
        if self.rows is None:
            return
        offset, D = self.recipe.offset, self.recipe.width
        kept = self.rows[offset:][:n]
        added = n - len(kept)
        if self.recipe.place == "sinusoidal":
            rows = places.sinusoids(n, D, models.INIT * 2**0.5)
            more = torch.tensor(rows[len(kept) :], dtype=torch.float32)
        elif how == "fresh":
            more = train.FRESH * torch.randn(added, D, generator=torch.manual_seed(0))
        else:
            more = kept[torch.arange(added) % len(kept)]
        more = more * (self.recipe.place in ("learned", "sinusoidal"))
        self._table().weight.data = torch.cat([self.rows[:offset], kept, more])

    def encode(self, text):
        """Ids of the text, without special tokens."""
        return np.array(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def run(self, ids, **more):
        """The reference library's result for ids [B T]."""
        ids = torch.from_numpy(ids)
        if self.recipe.family == "roberta" and self.recipe.place != "buckets":
            more["token_type_ids"] = torch.zeros_like(ids)
        with torch.no_grad():
            return self.model(input_ids=ids, **more)

    def losses(self, ids, n):
        """Loss in nats of each token of a text, nan where it was not predicted, in windows of n."""
        return self._causal(ids, n) if self.causal else self._masked(ids, n)

    def _causal(self, ids, n):
        losses = np.full(len(ids), np.nan, np.float32)
        for starts in batches(len(ids), n, n):
            indices = starts[:, None] + np.arange(n)
            logits = self.run(ids[indices]).logits[:, :-1]
            losses[indices[:, 1:]] = cross_entropy(logits, ids[indices[:, 1:]])
        return losses

    def _masked(self, ids, n):
        masked = np.random.default_rng(0).random(len(ids)) < MASK
        losses = np.full(len(ids), np.nan, np.float32)
        for starts in batches(len(ids), n - 2, n - 2):
            indices = starts[:, None] + np.arange(n - 2)
            inputs = np.where(masked[indices], len(self.recipe.specials) - 1, ids[indices])
            logits = self.run(framed(inputs)).logits[:, 1:-1]
            losses[indices] = np.where(masked[indices], cross_entropy(logits, ids[indices]), np.nan)
        return losses

    def looks(self, ids, documents=100):
        """Mean attention [L H 2 REACH + 1] at each offset, over inputs of the trained length."""
        self.lengthen(self.trained, "")
        n = self.trained if self.causal else self.trained - 2
        indices = np.arange(min(documents, len(ids) // n))[:, None] * n + np.arange(n)
        inputs = ids[indices] if self.causal else framed(ids[indices])
        patterns = self.run(inputs, output_attentions=True).attentions
        offsets = range(-REACH, REACH + 1)
        means = [[p.diagonal(o, -2, -1).mean((0, -1)) for o in offsets] for p in patterns]
        return np.array([torch.stack(layer, -1).numpy() for layer in means])


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
    return F.cross_entropy(logits.transpose(1, 2), torch.from_numpy(ids), reduction="none").numpy()


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

"""Who wrote a guess: what each component adds to its logit, and towards which words a head writes.

The parts are those of `minitx.circuits.logit_attribution`: exact with all norms frozen; by the
gradient where a head of its own stands before the vocabulary. Of each place, the heads that write
most have their words: what they write, through the same norms, times the vocabulary. L layers, H
heads, T places, D width, V vocabulary, G guesses, C components, K heads, W words, R reads, n drawn
tokens.
"""

from typing import NamedTuple

import numpy as np

import minitx
from minitx import head_weights
from minitx.activations import ACTIVATIONS
from minitx.circuits import attribution
from minitx.circuits.measure import with_places, with_tokens
from minitx.circuits.stream import EMBEDDINGS, POINT_OF, Stack
from minitx.circuits.table import NOWHERE
from minitx.heads import is_pooled
from minitx.inputs import check_batch
from minitx.kernels import layer_norm, linear

from ..maths import nulls
from ..measures import outputs
from .packing import TINY

TASKS = "masked", "causal", "sequence", "next_sentence"
MOST = 16  # heads of a place whose words are told, at most
WORDS, READS = 4, 3  # words that a head raises, and lowers; places that it reads from
ATTENTION = {"head": "attn_out", "cross_head": "cross_out"}  # what the heads of a layer write
COMPUTED = "head", "cross_head", "mlp"
STEP = 1e-3  # of the stream's length: for the slope of a head that is not linear


class Place(NamedTuple):
    """What was written at one place, in logits."""

    guesses: np.ndarray  # [G] ids, the likeliest first
    parts: np.ndarray  # [G C]
    null: np.ndarray  # [G C] what no component exceeds of drawn tokens, see `chance`
    most_null: np.ndarray  # [G] 99% quantile of the largest head's or MLP's share of all of them
    logits: np.ndarray  # [G]
    heads: np.ndarray  # [K] components, those with the largest parts of the likeliest guess
    words: np.ndarray  # [K 2W] ids: the most raised, then the most lowered
    raised: np.ndarray  # [K 2W] by how much
    sources: np.ndarray  # [K R] places with the largest parts of what the head adds to that guess
    taken: np.ndarray  # [K R] these parts

    @property
    def gap(self):
        """What the sums of the parts lack of the logits, at most."""
        return abs(self.logits - self.parts.sum(axis=-1)).max()


def is_linear(model):
    """Whether the sums of the parts are the logits; else a gradient stands for the head."""
    return attribution.is_linear(model)


def is_told(model):
    """Whether guesses of this model can be attributed: beside chance, so there are two or more."""
    if model.missing or model.config.task_head not in TASKS:
        return False
    return model.weights.W_U.shape[1] > 1


def of_text(model, tokens, places, most=MOST, n_guesses=outputs.GUESSES, **options):
    """The Place of some tokens of a text [T]; of the class of a whole text there is one.

    most: heads whose words are told. options: further keywords of `minitx.run`: edits, and the
    source of an encoder-decoder.
    """
    writers = Writers(model, tokens, **options)
    if is_pooled(model.config.task_head):
        places = [0]
    return [writers.place(column, most, n_guesses) for column in places]


class Writers:
    """A run of a text, and what its components write. `.components` [C]: (name, layer, head)."""

    def __init__(self, model, tokens, **options):
        self.model, self.stack = model, Stack(model)
        self.batch = check_batch(model.config, tokens)
        names = ["attn_out"] if model.encoder is None else ["attn_out", "cross_out"]
        keep = [*attribution.recorded(model, self.batch), *names]
        self.trace = minitx.run(model, tokens, keep, **options)
        self.components = components(model)

    def place(self, column, most, n_guesses):
        """The Place of one column."""
        y = with_places(self.trace["logits"])[0, column].astype(np.float64)
        guesses = outputs.likeliest(y[None], n_guesses).ids[0]
        asked = self.model, self.trace, self.batch, column
        each = [attribution.of_trace(*asked, np.array([i])) for i in guesses]
        parts, drawn = zip(*map(self.summed, each))
        parts, drawn = np.array(parts), abs(np.array(drawn))
        is_head = [name in ATTENTION for name, _, _ in self.components]
        sizes = np.where(is_head, abs(parts[0]), -1.0)
        heads = np.argsort(-sizes, kind="stable")[: min(most, sum(is_head))]
        said = *self.words(column, heads), *self.sources(column, guesses[0], heads)
        most_null = np.quantile(self.largest(drawn), nulls.CHANCE, axis=-1)
        return Place(guesses, parts, chance(drawn), most_null, y[guesses], heads, *said)

    def summed(self, table):
        """The rows of an Attribution, and of its drawn tokens, by component: [C], [C n]."""
        rows = np.c_[table.logits, table.drawn]
        total = np.zeros((len(self.components), rows.shape[1]))
        number = {component: i for i, component in enumerate(self.components)}
        for name, layer, head, row in zip(table.component, table.layer, table.head, rows):
            if not self.is_silent(name, layer):
                total[number[_kind(name, layer, head)]] += row
        return total[:, 0], total[:, 1:]

    def largest(self, drawn):  # [G C n] -> [G n]
        """The largest size of a head or an MLP of each drawn token, as a share of all of theirs."""
        is_computed = [name in COMPUTED for name, _, _ in self.components]
        sizes = drawn[:, is_computed]
        return sizes.max(axis=1) / np.maximum(sizes.sum(axis=1), TINY)

    def is_silent(self, name, layer):
        """Whether a layer's attention was switched off as a whole: its heads then write nothing."""
        out = ATTENTION.get(name.replace("b_O", "head"))
        return out is not None and not self.trace[out, layer].any()

    def words(self, column, heads):
        """The words [K 2W] that each head raises and lowers most, and by how much [K 2W]."""
        if is_pooled(self.model.config.task_head):
            return np.zeros((len(heads), 0), int), np.zeros((len(heads), 0))
        written = np.array([self.written(column, i).sum(axis=0) for i in heads])
        y = raised(self.model, self.last(column), written)
        most, least = outputs.likeliest(y, WORDS), outputs.likeliest(-y, WORDS)
        ids = np.concatenate([most.ids, least.ids], axis=1)
        return ids, np.take_along_axis(y, ids, -1)

    def sources(self, column, guess, heads):
        """The places [K R] that each head took most of the guess from, and how much [K R]."""
        model = with_tokens(self.model, np.array([guess]))
        places, taken = np.zeros((2, len(heads), READS))
        for k, i in enumerate(heads):
            parts = raised(model, self.last(column), self.written(column, i))[:, 0]
            largest = np.argsort(-abs(parts), kind="stable")[:READS]
            places[k, : len(largest)] = largest
            taken[k, : len(largest)] = parts[largest]
        return places, taken

    def written(self, column, i):  # -> [S D]
        """What a head adds to the last stream, by the place that it is taken from."""
        name, layer, head = self.components[i]
        prefix = name.removesuffix("head")
        z = self.trace[POINT_OF[name], layer][0, head, column]
        pattern = self.trace[f"{prefix}pattern", layer][0, head, column]
        values = self.trace[f"{prefix}v", layer][0]
        if self.is_silent(name, layer) or not z.any():  # it is off
            return np.zeros((len(pattern), self.model.config.d_model))
        W_O = head_weights.outputs(self.stack.arrays(name, layer).W_O, self.stack.cfg.n_heads)[head]
        value = values[head_weights.key_head(self.stack.cfg, head)]
        taken = pattern[:, None].astype(np.float64) * value
        walk = attribution.Walk(self.stack, self.trace, np.array([column]), column, False)
        start = self.stack.index("write", name, layer)
        return walk.to_end((taken @ W_O)[:, None], start)[:, 0]

    def last(self, column):  # -> [D]
        """What the task head reads."""
        name = "ln_final" if self.model.config.pre_norm else ("resid_post", -1)
        return self.trace[name][0, column].astype(np.float64)


def components(model):
    """All components, heads first: the heads of each layer, its MLP, its biases, the rest."""
    L, H = model.config.n_layers, model.config.n_heads
    kinds = ["head"] if model.encoder is None else ["head", "cross_head"]
    heads = [(kind, layer, head) for kind in kinds for layer, head in np.ndindex(L, H)]
    layers = [(kind, layer, NOWHERE) for kind in ("mlp", "biases") for layer in range(L)]
    names = [*EMBEDDINGS, "biases"]
    return [*heads, *layers, *((name, NOWHERE, NOWHERE) for name in names)]


def chance(drawn):  # [G C n] -> [G C]
    """What no component exceeds of drawn tokens, whose sizes are given: many are tried at once.

    Each component's 99% quantile, times what the largest is of all components and drawn tokens,
    each as a multiple of its quantile.
    """
    own = np.quantile(drawn, nulls.CHANCE, axis=-1, keepdims=True)
    multiples = drawn / np.maximum(own, TINY)
    return (own * multiples.max(axis=(1, 2), keepdims=True))[:, :, 0]


def _kind(name, layer, head):
    """The component that a row of an Attribution belongs to."""
    if name in ATTENTION or name == "mlp" or name in EMBEDDINGS:
        return name, layer, head
    return "biases", layer, NOWHERE


def raised(model, x, changes):  # [D], [K D] -> [K V]
    """By how much each change of the stream x that the task head reads raises each logit."""
    w, cfg = model.weights, model.config
    if not attribution.is_linear(model):
        sizes = np.linalg.norm(changes, axis=-1, keepdims=True)
        step = STEP * np.linalg.norm(x) / np.where(sizes == 0, 1.0, sizes)
        above, below = (_before_vocabulary(w, cfg, x + sign * step * changes) for sign in (1, -1))
        changes = (above - below) / (2 * step)
    return (changes * cfg.unembed_scale).astype(w.W_U.dtype) @ w.W_U


def _before_vocabulary(w, cfg, x):  # [K D] -> [K D]
    """The head's own layers, before the vocabulary."""
    if w.W_head is not None:
        x = ACTIVATIONS[cfg.head_act](linear(x, w.W_head, w.b_head))
    return x if w.ln_head_w is None else layer_norm(x, w.ln_head_w, w.ln_head_b, cfg.eps)

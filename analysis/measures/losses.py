"""The loss of each token of a document: -ln p, in nats, for documents of any length.

A causal model has a loss for every token but the first, given the tokens before it; a masked model
has one (called pseudo-loss) for each ordinary token, hidden alone (Salazar et al. 2020), or for
several hidden at once, as in its training, which takes one pass for all of them. A document
longer than the model reads is cut into windows that overlap; each token counts once, in the window
where it has the most context. However large the vocabulary, few logits exist at once.

A condition is a function condition(model) -> hook, a hook as `minitx.forward` takes it: tables of
positions, masks. None: the model as it is. `options`: further keywords of `forward` (mask=,
positions=).

T tokens of a document, W of a window, B rows of a batch, n tokens that count, V vocabulary, D
width.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from minitx import forward, logits
from minitx.machine.threads import spread
from minitx.model import identity

from ..texts import corpus

# tokens and vocabulary whose logits a thread holds at once: 8 MiB in float64
ROWS, COLUMNS = 256, 4096
LOWEST = np.finfo(np.float64).min
TOGETHER = 1024  # tokens in a batch of windows
MASKS = ("<mask>", "[MASK]")


class Window(NamedTuple):
    """A part of a document that a model can read."""

    tokens: np.ndarray  # [W]
    places: np.ndarray  # [n] numbers of the window's tokens that count here
    where: np.ndarray  # [n] their numbers in the document


def windows(model, tokens, window=0, stride=0):
    """Windows of a document [T] that together count every token once; a list.

    window: tokens of each (0: the model's longest). stride: tokens between the starts of two
    windows (0: half of the window's). The special tokens at the ends of a masked model's document
    stand at the ends of every window. Raises ValueError for a window or a stride that is too small
    or large.
    """
    cfg, T = model.config, len(tokens)
    before, after = (0, 0) if cfg.causal else ends(model, tokens)
    size = (window or cfg.n_ctx) - before - after  # ordinary tokens of a window
    inner = T - before - after  # ordinary tokens of the document
    stride = stride or max(size // 2, 1)
    if not (2 <= (window or 2) <= cfg.n_ctx and 1 <= stride < size):
        raise ValueError(
            f"window {window} and stride {stride}: wanted a window of 2 to {cfg.n_ctx} tokens, "
            "special tokens included, and a stride of at least 1 and less than the window's "
            "ordinary tokens"
        )
    last = max(-(-(inner - size) // stride), 0)
    counting = _counting_window(inner, size, stride, cfg.causal).clip(0, last)
    counting = np.r_[np.zeros(before, int), counting, np.full(after, last)]
    cut = []
    for n in range(last + 1):
        body = np.arange(n * stride, min(n * stride + size, inner)) + before
        numbers = np.r_[np.arange(before), body, np.arange(T - after, T)]
        places = np.flatnonzero(counting[numbers] == n)
        cut.append(Window(np.asarray(tokens)[numbers], places, numbers[places]))
    return cut


def _counting_window(inner, size, stride, causal):
    """Number of the window in which each ordinary token counts: [inner]; it may lie outside.

    In a causal model the first window that holds a token counts it; in other models it is the
    window whose middle is nearest.
    """
    i = np.arange(inner)
    if causal:
        return -(-(i + 1 - size) // stride)
    return np.rint((i - (size - 1) / 2) / stride).astype(int)


def ends(model, tokens):
    """How many special tokens stand at the two ends of a document."""
    before, after = corpus.specials(model)
    at_start = np.array_equal(tokens[: len(before)], before)
    at_end = np.array_equal(tokens[len(tokens) - len(after) :], after)
    return len(before) if at_start else 0, len(after) if at_end else 0


def surprisal(model, x, truth):
    """-ln p of each true token [n] from final features [n D], in float64: [n].

    Log-sum-exp over the vocabulary in chunks: each thread holds no more than ROWS x COLUMNS logits.
    """
    losses = [np.zeros(0)]
    for i in range(0, len(truth), ROWS):
        losses.append(_surprisal(model, x[i : i + ROWS], truth[i : i + ROWS]))
    return np.concatenate(losses)


def _surprisal(model, x, truth):
    """`surprisal` of at most ROWS tokens."""
    V = model.config.n_vocab
    own = np.empty(len(truth))  # logits of the true tokens
    top, total = np.empty((2, -(-V // COLUMNS), len(truth)))  # of each chunk of the vocabulary

    def chunk(first, end):
        k = first // COLUMNS
        y = _some_logits(model, x, slice(first, end))
        is_inside = (first <= truth) & (truth < end)
        own[is_inside] = y[is_inside, truth[is_inside] - first]
        top[k] = y.max(axis=1, initial=LOWEST)
        y -= top[k, :, None]
        total[k] = np.exp(y, out=y).sum(axis=1)

    spread(chunk, V, COLUMNS)
    most = top.max(axis=0)
    return most + np.log((total * np.exp(top - most)).sum(axis=0)) - own


def _some_logits(model, x, columns):
    """Logits of a part of the vocabulary [n C] in float64."""
    w = model.weights
    b = None if w.b_U is None else w.b_U[columns]
    part = SimpleNamespace(**vars(w) | {"W_U": w.W_U[:, columns], "b_U": b})
    return logits(replace(model, weights=part), x[None])[0].astype(np.float64)


def next_tokens(model, window, x):
    """Losses of the tokens that a causal model's window counts, from its final features [W D]: [n].

    The first window has one fewer: nothing precedes the first token of a document.
    """
    places = window.places[window.places > 0]
    return surprisal(model, x[places - 1], window.tokens[places])


def features(model, rows, condition=None, **options):
    """Final features of rows of tokens of any lengths, padded to one batch: list of [T_i D]."""
    tokens = np.full((len(rows), max(map(len, rows))), model.config.pad_id)
    valid = np.zeros(tokens.shape, bool)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
        valid[i, : len(row)] = True
    x = forward(model, tokens, valid=valid, hook=tap(model, condition), **options)
    return [x[i, : len(row)] for i, row in enumerate(rows)]


def causal(model, tokens, window=0, stride=0, condition=None, **options):
    """Loss of every token of a document [T] but the first, given those before it, in nats: [T-1].

    window, stride: as in `windows`. Raises ValueError for a model that does not predict the next
    token.
    """
    return batch(model, [tokens], window, stride, condition, **options)[0]


def batch(model, documents, window=0, stride=0, condition=None, **options):
    """`causal` of documents of any lengths: list of [T_i - 1].

    Their windows go through the model side by side.
    """
    needs_head(model, "causal")
    parts = []  # (number of the document, window)
    for i, tokens in enumerate(documents):
        parts.extend((i, part) for part in windows(model, tokens, window, stride))
    step = max(1, TOGETHER // max(len(part.tokens) for _, part in parts))
    losses = [[] for _ in documents]
    for start in range(0, len(parts), step):
        together = parts[start : start + step]
        final = features(model, [part.tokens for _, part in together], condition, **options)
        for (i, part), x in zip(together, final):
            losses[i].append(next_tokens(model, part, x))
    return [np.concatenate(of_document) for of_document in losses]


def masked(model, tokens, condition=None, every=1, start=0, window=0, stride=0, **options):
    """Pseudo-loss of ordinary tokens of a document [T], each hidden alone, in nats: [n].

    every, start: the ordinary tokens number start, start + every, ... Raises ValueError for a model
    that fills no gaps.
    """
    needs_head(model, "masked")
    mask_id = mask_token(model.tokenizer)
    before, after = ends(model, tokens)
    measured = np.arange(before, len(tokens) - after)[start::every]
    losses = [np.zeros(0)]
    for part in windows(model, tokens, window, stride):
        places = part.places[np.isin(part.where, measured)]
        step = max(1, TOGETHER // len(part.tokens))
        for i in range(0, len(places), step):
            rows = _hidden_alone(part.tokens, places[i : i + step], mask_id)
            x = forward(model, rows.tokens, hook=tap(model, condition), **options)
            losses.append(surprisal(model, x[rows.numbers, rows.places], rows.truth))
    return np.concatenate(losses)


def gaps(model, tokens, condition=None, every=1, start=0):
    """Loss of ordinary tokens of a document [T], hidden together in one pass, in nats: [n].

    every, start: as in `masked`. Raises ValueError for a model that is no masked language model, or
    for a document that is longer than it reads.
    """
    needs_head(model, "masked")
    before, after = ends(model, tokens)
    places = np.arange(before, len(tokens) - after)[start::every]
    hidden = np.array(tokens)
    hidden[places] = mask_token(model.tokenizer)
    x = forward(model, hidden, hook=tap(model, condition))
    return surprisal(model, x[0, places], np.asarray(tokens)[places])


def total(model, tokens, every=1, start=0, **way):
    """Sum of the losses of a document [T], causal or masked by the model's head, and their number.

    every, start: as in `masked`. way: condition and options of `forward`.
    """
    if model.config.task_head == "masked":
        costs = masked(model, tokens, every=every, start=start, **way)
    else:
        costs = causal(model, tokens, **way)
    return costs.sum(), len(costs)


class HiddenAlone(NamedTuple):
    """Copies of a window in which one token each is hidden."""

    tokens: np.ndarray  # [n W]
    numbers: np.ndarray  # [n] of the rows: 0 ... n - 1
    places: np.ndarray  # [n] of the hidden tokens
    truth: np.ndarray  # [n] what stood there


def _hidden_alone(tokens, places, mask_id):
    """A row for each of these positions [n] of a window [W], with the token there hidden."""
    rows = np.tile(tokens, (len(places), 1))
    numbers = np.arange(len(places))
    rows[numbers, places] = mask_id
    return HiddenAlone(rows, numbers, places, tokens[places])


def tap(model, condition):
    """The hook of a condition; without one, that of a plain run."""
    return identity if condition is None else condition(model)


def needs_head(model, head):
    """Raise ValueError unless the model has this head."""
    if model.config.task_head != head:
        raise ValueError(
            f"wanted a {head} language model; this checkpoint's head is {model.config.task_head}"
        )


def mask_token(tokenizer):
    """Id of the token that hides another; raises ValueError if the vocabulary has none."""
    return token_of(tokenizer, MASKS)


def token_of(tokenizer, names):
    """Id of the first of these tokens that a vocabulary has; raises ValueError if it has none."""
    for piece in names:
        ids = tokenizer.encode(piece, special=False)
        if tokenizer.pieces(ids) == [piece]:
            return ids[0]
    raise ValueError(f"this model's vocabulary has neither {' nor '.join(names)}")

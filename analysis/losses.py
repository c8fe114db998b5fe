"""What a model pays for each token of a document: -ln p, in nats, whatever the document's length.

A causal model pays for every token but the first, given those before it; a masked model (under the name
pseudo-loss) for each ordinary token, hidden alone (Salazar et al. 2020). A document longer than the model reads is
cut into windows that overlap; each token counts once, in the window where it has the most context. However large
the vocabulary, few logits exist at once.

A condition is a function condition(model) -> at, where `at` is a tap as `minitx.forward` takes it: tables of
positions, masks. None: the model as it is. `how`: further keywords of `forward` (mask=, positions=).
Order: windows; the cost of tokens, in chunks of the vocabulary; causal models; masked models. T tokens of a
document, W of a window, B rows of a batch, n tokens paid for, V vocabulary, D width.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from minitx import forward, logits
from minitx.model import identity
from minitx.threads import spread

from . import corpus

ROWS, COLUMNS = 256, 4096  # tokens and vocabulary whose logits a thread holds at once: 8 MiB in float64
LOWEST = np.finfo(np.float64).min
TOGETHER = 1024            # tokens in a batch of windows
MASKS = ("<mask>", "[MASK]")


class Window(NamedTuple):
    """A part of a document that a model can read."""
    tokens: np.ndarray  # [W]
    places: np.ndarray  # [n] numbers of the window's tokens that count here
    where: np.ndarray   # [n] their numbers in the document


def windows(model, tokens, window=0, stride=0):
    """Windows of a document [T] that between them count every token once; a list.

    window: tokens of each (0: the model's longest). stride: tokens between the beginnings of two (0: half of the
    window's). The special tokens at the ends of a masked model's document stand at the ends of every window.
    Of a causal model's windows the first to hold a token counts it, of others that whose middle is nearest.
    """
    cfg, T = model.config, len(tokens)
    before, after = (0, 0) if cfg.causal else _ends(model, tokens)
    most, inner = (window or cfg.n_ctx) - before - after, T - before - after
    stride = stride or max(most // 2, 1)
    if not (2 <= (window or 2) <= cfg.n_ctx and 1 <= stride < most):
        raise ValueError(f"window {window} and stride {stride}: wanted a window of 2 to {cfg.n_ctx} tokens, special "
                         "tokens included, and a stride of at least 1 and less than the window's ordinary tokens")
    last, i = max(-(-(inner - most) // stride), 0), np.arange(inner)
    reach = -(-(i + 1 - most) // stride) if cfg.causal else np.rint((i - (most - 1) / 2) / stride).astype(int)
    number = np.r_[np.zeros(before, int), reach.clip(0, last), np.full(after, last)]  # of the window that counts it
    found = []
    for n in range(last + 1):
        body = np.arange(n * stride, min(n * stride + most, inner)) + before
        held = np.r_[np.arange(before), body, np.arange(T - after, T)]
        places = np.flatnonzero(number[held] == n)
        found.append(Window(np.asarray(tokens)[held], places, held[places]))
    return found


def _ends(model, tokens):
    """How many special tokens stand at the two ends of a document."""
    before, after = corpus.specials(model)
    T, a, b = len(tokens), len(before), len(after)
    return (a * np.array_equal(tokens[:a], before), b * np.array_equal(tokens[T - b:], after))


def surprisal(model, x, truth):
    """-ln p of each true token [n] from final features [n D], in float64: [n].

    Log-sum-exp over the vocabulary in chunks: each thread holds no more than ROWS x COLUMNS logits.
    """
    parts = [slice(i, i + ROWS) for i in range(0, len(truth), ROWS)]
    return np.concatenate([_surprisal(model, x[part], truth[part]) for part in parts] or [np.zeros(0)])


def _surprisal(model, x, truth):
    V, own = model.config.n_vocab, np.empty(len(truth))
    top, total = np.empty((2, -(-V // COLUMNS), len(truth)))  # of each chunk of the vocabulary

    def chunk(first, end):
        y = _some_logits(model, x, slice(first, end))
        here, k = (first <= truth) & (truth < end), first // COLUMNS
        own[here] = y[here, truth[here] - first]
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

    One less in the first window: nothing stands before the first token of a document.
    """
    places = window.places[window.places > 0]
    return surprisal(model, x[places - 1], window.tokens[places])


def features(model, rows, condition=None, **how):
    """Final features of rows of tokens of any lengths, padded to one batch [B T D]: list of [T_i D]."""
    tokens = np.full((len(rows), max(map(len, rows))), model.config.pad_token)
    valid = np.zeros(tokens.shape, bool)
    for i, row in enumerate(rows):
        tokens[i, :len(row)], valid[i, :len(row)] = row, True
    x = forward(model, tokens, valid=valid, at=tap(model, condition), **how)
    return [x[i, :len(row)] for i, row in enumerate(rows)]


def causal(model, tokens, window=0, stride=0, condition=None, **how):
    """Loss of every token of a document [T] but the first, given those before it, in nats: [T-1].

    window, stride: as in `windows`. ValueError for a model that does not predict the next token.
    """
    return batch(model, [tokens], window, stride, condition, **how)[0]


def batch(model, documents, window=0, stride=0, condition=None, **how):
    """`causal` of documents of any lengths, whose windows go through the model side by side: list of [T_i - 1]."""
    needs_head(model, "causal")
    cut = [(i, one) for i, tokens in enumerate(documents) for one in windows(model, tokens, window, stride)]
    step, found = max(1, TOGETHER // max(len(one.tokens) for _, one in cut)), [[] for _ in documents]
    for some in (cut[i:i + step] for i in range(0, len(cut), step)):
        ready = features(model, [one.tokens for _, one in some], condition, **how)
        for (i, one), x in zip(some, ready):
            found[i].append(next_tokens(model, one, x))
    return [np.concatenate(losses) for losses in found]


def masked(model, tokens, condition=None, every=1, start=0, window=0, stride=0, **how):
    """Pseudo-loss of ordinary tokens of a document [T], each hidden alone, in nats: [n].

    every, start: the ordinary tokens number start, start + every, ... ValueError for a model that fills no gaps.
    """
    needs_head(model, "masked")
    hidden, found = mask_token(model.tokenizer), []
    before, after = _ends(model, tokens)
    chosen = np.arange(before, len(tokens) - after)[start::every]
    for one in windows(model, tokens, window, stride):
        places = one.places[np.isin(one.where, chosen)]
        step = max(1, TOGETHER // len(one.tokens))
        for some in (places[i:i + step] for i in range(0, len(places), step)):
            rows, numbers = np.tile(one.tokens, (len(some), 1)), np.arange(len(some))
            rows[numbers, some] = hidden
            x = forward(model, rows, at=tap(model, condition), **how)
            found.append(surprisal(model, x[numbers, some], one.tokens[some]))
    return np.concatenate(found or [np.zeros(0)])


def tap(model, condition):
    """The tap of a condition; without one, that of a plain run."""
    return identity if condition is None else condition(model)


def needs_head(model, head):
    """ValueError unless the model has this head."""
    if model.config.head != head:
        raise ValueError(f"wanted a {head} language model; this checkpoint's head is {model.config.head}")


def mask_token(tokenizer):
    """Id of the token that hides another; ValueError if the vocabulary has none."""
    for piece in MASKS:
        ids = tokenizer.encode(piece, special=False)
        if tokenizer.pieces(ids) == [piece]:
            return ids[0]
    raise ValueError(f"this model's vocabulary has neither {' nor '.join(MASKS)}")

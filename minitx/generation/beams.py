"""Beam search: several continuations of each text grow side by side, and the best is kept.

At each step every open beam goes on with every token. Of these K V candidates the best 2 K by the
sum of their log-probabilities are looked at: those among the best K that end are finished, and the
best K that do not end stay open. A finished beam is ranked by sum / length ** length_penalty, where
length counts its new tokens. A text is done when its best open beam, ranked in the same way as if
it ended here ("never": at the length that is best for it), is no better than its worst finished
one. This is the reference library's definition.

Read downward: `best_beam`, `search`, one step after another. B texts, K beams, V vocabulary, t new
tokens so far, n at most.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from ..cache import Cache
from ..hooks import identity
from ..inputs import source_arguments
from ..masks import Keys
from ..model import forward
from .constraints import log_softmax, until
from .steps import next_logits

LARGEST = 600  # a logarithm: float64 ends at 709
NEVER = -1e9  # score of the beams that are not begun: at first all would be the same


class Width(NamedTuple):
    """How many beams there are, and how they are ranked; see `generate`."""

    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False

    def check(self, temperature, n):
        """Raises ValueError for values out of range; n: new tokens."""
        whole = isinstance(self.num_beams, int | np.integer)
        if not (whole and self.num_beams >= 1 and self._is_finite(n)):
            raise ValueError(
                f"num_beams={self.num_beams!r:.80}, length_penalty={self.length_penalty!r:.80}; "
                "wanted a whole num_beams >= 1, and a length_penalty for which "
                "n ** length_penalty is finite and not 0"
            )
        early = self.early_stopping
        if not isinstance(early, bool | np.bool) and repr(early) != "'never'":
            raise ValueError(f"early_stopping={early!r:.80}; wanted True, False or 'never'")
        if self.num_beams > 1 and temperature:
            text = f"num_beams={self.num_beams} and temperature={temperature}"
            raise ValueError(f"{text}; beam search does not sample: wanted one of them")

    def _is_finite(self, n):
        """Whether every length to n has a power that a sum can be divided by."""
        penalty = self.length_penalty
        return isinstance(penalty, Real) and abs(penalty) * np.log(max(n, 2)) < LARGEST


class Beams(NamedTuple):
    """The beams of each text, best first."""

    tokens: np.ndarray  # [B K t]: new tokens of the open beams
    scores: np.ndarray  # [B K]: sums of their log-probabilities
    done: np.ndarray  # [B K n]: new tokens of the finished beams
    done_scores: np.ndarray  # [B K]: sum / length ** length_penalty; -inf where there is none yet
    growing: np.ndarray  # [B] bool: a better finished beam may still come


class Candidates(NamedTuple):
    """The best 2 K continuations of each text's open beams, best first."""

    tokens: np.ndarray  # [B 2K t+1]
    scores: np.ndarray  # [B 2K]
    parents: np.ndarray  # [B 2K]: the beam that each goes on from


def best_beam(
    model, prompts, n, stop, allowed, width, hook=identity
):  # -> [B n], fewer if all end early
    """New tokens of each row's best beam."""
    new = search(model, prompts, n, stop, allowed, width, hook).done[:, 0]
    return new[:, : max(len(until(stop, row)) for row in new)]


def search(model, prompts, n, stop, allowed, width, hook=identity):
    """The Beams of each prompt after n new tokens, or as soon as no text can get better.

    prompts: as prompts.py gives them; n: at least 1; allowed: Constraints; width: a Width.
    """
    B, K = len(prompts.batch.tokens), width.num_beams
    cache, x = read_prompts_once(model, prompts, K, hook)
    beams = first_beams(B, K, n, stop)
    for i in range(n):
        y = next_logits(model, x, hook)
        new = beams.tokens.reshape(B * K, i)
        logp = allowed.apply(new, log_softmax(y))  # [BK V]
        candidates = best_candidates(beams, logp)
        is_last = i == n - 1
        ends = is_last | (candidates.tokens[..., -1] == stop)  # [B 2K]
        beams = finish(beams, candidates, ends, width)
        beams, parents = go_on(beams, candidates, ends, width)
        if not beams.growing.any():
            break
        first_rows = K * np.arange(B)[:, None]  # where the beams of each text begin
        cache.take(np.ravel(first_rows + parents))
        newest = beams.tokens[..., -1]
        x = forward(model, newest.reshape(B * K, 1), cache=cache, hook=hook)
    return beams


def read_prompts_once(model, prompts, K, hook):
    """A cache with K rows for each text, and its last stream [BK T D]."""
    batch, cache = prompts.batch, Cache()
    given = source_arguments(prompts.source)
    x = forward(model, batch.tokens, valid=batch.valid, cache=cache, hook=hook, **given)
    rows = np.repeat(np.arange(len(x)), K)
    cache.take(rows)
    if cache.source is not None:
        cache.source = source_rows(cache.source, rows)
    return cache, x[rows]


def source_rows(source, rows):
    """These rows of a Source: of its keys and values, too, which are not computed again."""
    cached = {}
    for layer, (k, v) in source.cached.items():
        cached[layer] = k[rows], v[rows]
    numbers, valid = source.keys
    keys = Keys(numbers[rows], valid[rows])
    return source._replace(x=source.x[rows], keys=keys, cached=cached)


def first_beams(B, K, n, stop):
    """One open beam for each text, without a token; the others are not begun."""
    scores = np.full((B, K), NEVER)
    scores[:, 0] = 0
    done = np.full((B, K, n), 0 if stop is None else stop)
    done_scores = np.full((B, K), -np.inf)
    return Beams(done[..., :0], scores, done, done_scores, growing=np.full(B, True))


def best_candidates(beams, logp):  # logp [BK V]
    """Each open beam with each next token: the best 2 K of these."""
    B, K = beams.scores.shape
    V = logp.shape[-1]
    scores = beams.scores[..., None] + logp.reshape(B, K, V)
    scores = scores.reshape(B, K * V)
    order = best(scores, 2 * K)
    parents, token = np.divmod(order, V)
    before = pick(beams.tokens, parents)
    tokens = np.concatenate([before, token[..., None]], axis=-1)
    return Candidates(tokens, pick(scores, order), parents)


def finish(beams, candidates, ends, width):
    """The best K finished beams of those before and the candidates that end now."""
    K = width.num_beams
    length = candidates.tokens.shape[-1]
    is_first = np.arange(2 * K) < K  # the others are there to keep K beams open
    counts = ends & is_first & beams.growing[:, None]
    ranks = candidates.scores / length**width.length_penalty
    ranks = np.where(counts, ranks, -np.inf)
    new = beams.done[:, :1].repeat(2 * K, axis=1)
    new[..., :length] = candidates.tokens  # behind these all finished beams are filled up
    done = np.concatenate([beams.done, new], axis=1)
    ranks = np.concatenate([beams.done_scores, ranks], axis=1)
    order = best(ranks, K)
    return beams._replace(done=pick(done, order), done_scores=pick(ranks, order))


def go_on(beams, candidates, ends, width):  # -> Beams, parents [B K]
    """The best K candidates that do not end stay open; is a better finished one to come?"""
    length = candidates.tokens.shape[-1]
    scores = np.where(ends, -np.inf, candidates.scores)
    order = best(scores, width.num_beams)
    scores = pick(scores, order)
    worst = beams.done_scores.min(axis=1)
    is_never = width.early_stopping == "never"
    if is_never and width.length_penalty > 0:
        length = beams.done.shape[-1]  # the longest has the best rank
    rank = scores[:, 0] / length**width.length_penalty
    growing = beams.growing & (rank > worst)
    if width.early_stopping and not is_never:
        growing &= np.isneginf(worst)  # until K are finished
    tokens = pick(candidates.tokens, order)
    beams = beams._replace(tokens=tokens, scores=scores, growing=growing)
    return beams, pick(candidates.parents, order)


def best(scores, n):  # [B N] -> [B n]
    """Where the n highest scores of each row are, the highest first."""
    places = np.argpartition(-scores, n - 1, axis=1)[:, :n]
    highest = pick(scores, places)
    order = np.argsort(-highest, axis=1, kind="stable")
    return pick(places, order)


def pick(x, places):  # [B N ...], [B n] -> [B n ...]
    """The entries at these places of each row."""
    rows = np.arange(len(x))[:, None]
    return x[rows, places]

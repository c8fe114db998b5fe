"""Continue texts with a language model, token after token over a cache."""

from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Model
from .beams import Width, best_beam
from .cache import Cache
from .constraints import constraints
from .inputs import Ids, Texts, as_model, source_arguments
from .model import forward, logits
from .prompts import check_generates, check_room, check_stop, read_prompts
from .sampling import Sampling, generator


def generate(
    model: Model | str | PathLike[str],
    prompt: Texts | Ids | None = None,
    n: int = 20,
    *,
    source: Texts | Ids | None = None,
    source_valid: ArrayLike | None = None,
    valid: ArrayLike | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    stop: int | None = None,
    num_beams: int = 1,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
    repetition_penalty: float | None = None,
    no_repeat_ngram_size: int | None = None,
    min_new_tokens: int | None = None,
    ignore_settings: bool = False,
) -> np.ndarray | Any:  # Any: a list of arrays, for several prompts
    """The prompt followed by up to n new tokens, as ids.

    model: a Model, or its name, which is then loaded at each call.
    prompt: ids [T] or [B T] -> ids [T+n] or [B T+n]. Or a text, a list of texts, or lists of ids of
    different lengths -> one array of ids for each prompt, without padding.
    source: the input of an encoder-decoder, in the same forms; its prompt then defaults to the
    start token. The encoder runs once.
    valid: [B T] bool, False on padding, which must be on the left.
    temperature: 0 takes the most probable token; otherwise one is sampled from softmax(logits /
    temperature), among the top_k most probable and the smallest set with probability top_p
    (Holtzman et al. 2020).
    seed: the same seed samples the same tokens.
    stop: a token id that ends a row; in an array, ended rows are padded with it. In an
    encoder-decoder the default is the model's end token.
    num_beams: more than 1 means beam search (beams.py) with this number of continuations, ranked by
    sum of log-probabilities / length ** length_penalty. early_stopping: a text is finished as soon
    as num_beams continuations have ended, even if an open one could still be better; "never": only
    when no continuation of up to n tokens can be better.
    repetition_penalty: scores of tokens that are there already are divided by it, or multiplied if
    they are below 0 (Keskar et al. 2019). no_repeat_ngram_size: as many tokens in a row never come
    twice. min_new_tokens: `stop` comes no sooner. None, for these three: as the folder's settings
    say, in generation_config.json or else config.json. These also determine the least length
    (min_length), forced tokens, banned words (bad_words_ids) and, in an encoder-decoder, the start
    and end tokens. What has another default here, such as num_beams or temperature, is not read.
    ignore_settings: generate without those of the folder's settings that are not supported.
    Raises ValueError if the prompt or n do not fit the model, an argument is out of range, or a
    setting of the folder is not supported.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> ids = minitx.generate(model, "The dog", 6)
    >>> model.tokenizer.decode(ids)
    'The dogs, and the others'
    """
    model = as_model(model)
    check_generates(model, ignore_settings)
    sampling = Sampling(temperature, top_k, top_p)
    sampling.check(n)
    width = Width(num_beams, length_penalty, early_stopping)
    width.check(temperature, n)
    draw = partial(sampling.draw, rng=generator(seed))
    check_stop(stop, model.config.n_vocab)
    prompts = read_prompts(model, prompt, valid, source, source_valid)
    check_room(model, prompts.batch, n)
    if stop is None:
        stop = model.config.end_id
    own = repetition_penalty, no_repeat_ngram_size, min_new_tokens
    settings = model.config.generation.replaced(*own)
    allowed = constraints(settings, prompts.batch, n, stop)
    if num_beams == 1 or n == 0:
        new = _continue(model, prompts, n, stop, allowed, draw)
    else:
        new = best_beam(model, prompts, n, stop, allowed, width)
    return prompts.with_new(new, stop)


def _continue(model, prompts, n, stop, allowed, draw):  # -> [B n], fewer if every row stops early
    """New tokens: source and prompt in one pass, then one token a pass over the cache."""
    tokens, valid = prompts.batch.tokens, prompts.batch.valid
    given = source_arguments(prompts.source)
    cache, new, ended = Cache(), tokens[:, :0], np.zeros(len(tokens), bool)
    for _ in range(n):
        x = forward(model, tokens, valid=valid, cache=cache, **given)
        y = logits(model, x[:, -1:])  # [B 1 V]
        token = draw(allowed.apply(new, y[:, 0]))
        if stop is not None:
            token = np.where(ended, stop, token)
            ended |= token == stop
        tokens, valid, given = token[:, None], None, {}
        new = np.concatenate([new, tokens], axis=1)
        if ended.all():
            break
    return new

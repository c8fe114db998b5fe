"""Continue texts with a language model, token after token over a cache."""

from collections.abc import Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Model
from .cache import Cache
from .edits import Edit
from .generation.beams import Width, best_beam
from .generation.constraints import constraints
from .generation.prompts import check_generates, check_room, check_stop, read_prompts
from .generation.steps import Steps, next_logits, read_rest
from .inputs import Ids, Texts, as_model, source_arguments
from .model import forward
from .points import Key
from .sampling import Sampling, generator


def generate(
    model: Model | str | PathLike[str],
    prompt: Texts | Ids | None = None,
    n: int = 20,
    *,
    edits: Mapping[Any, Edit] | None = None,
    keep: Key | Sequence[Key] | None = None,
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
) -> np.ndarray | Any:  # Any: a list of arrays, for several prompts; with keep a Trace, too
    """The prompt followed by up to n new tokens, as ids.

    model: a Model, or its name, which is then loaded at each call.
    prompt: ids [T] or [B T] -> ids [T+n] or [B T+n]. Or a text, a list of texts, or lists of ids of
    different lengths -> one array of ids for each prompt, without padding.
    edits: as for `run`, in every pass; a function sees the tokens of one pass: first the prompt
    [B T ...], padding included, then one new token [B 1 ...], whose scores and pattern have the
    keys so far [B H 1 S]; with beams the rows are num_beams for each text. A value is a function or
    one number.
    keep: names of points, as for `run` -> (ids, Trace) of all tokens, prompt and last new token
    included; `.valid` is False on padding and after a text's end. With beams the best continuation
    is run again, with the same edits. None: ids alone.
    source: the input of an encoder-decoder, in the same forms; its prompt then defaults to the
    start token. The encoder runs once.
    valid: [B T] bool, False on padding, which must be on the left.
    temperature: 0 takes the most probable token; otherwise one is sampled from softmax(logits /
    temperature), among the top_k most probable and the smallest set with probability top_p
    (Holtzman et al. 2020).
    seed: the same seed samples the same tokens.
    stop: a token id that ends a row; in an array, ended rows are padded with it. In an
    encoder-decoder the default is the model's end token.
    num_beams: more than 1 means beam search with this number of continuations, ranked by the sum of
    log-probabilities / length ** length_penalty. early_stopping: a text is finished as soon
    as num_beams continuations have ended, even if an open one could still be better; "never": only
    when no continuation of up to n tokens can be better.
    repetition_penalty: logits of tokens already in the text are divided by it, or multiplied if
    below 0 (Keskar et al. 2019). no_repeat_ngram_size: no sequence of this many tokens occurs
    twice. min_new_tokens: `stop` is not generated before. None, for these three: the value in the
    folder's generation_config.json, or else config.json. These files also determine the least
    length (min_length), forced tokens, banned words (bad_words_ids) and, in an encoder-decoder, the
    start and end tokens. Their num_beams, temperature and the like are not read: defaults here are
    those of the signature. ignore_settings: generate without the folder's unsupported settings.
    Raises ValueError if the prompt or n do not fit the model, an argument is out of range, or a
    setting of the folder is not supported.

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> ids = minitx.generate(model, "The dog", 6)
    >>> model.tokenizer.decode(ids)
    'The dogs, and the others'

    The same without the last layer's MLP, and the stream of all tokens:

    >>> edits = {("mlp_out", -1): 0}
    >>> ids, trace = minitx.generate(model, "The dog", 6, edits=edits, keep="resid_post")
    >>> model.tokenizer.decode(ids), trace["resid_post", -1].shape
    ('The dogs, and others,', (1, 9, 128))
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
    check_room(model, prompts.batch, n, reads_last=keep is not None)
    steps, cache = Steps(model, keep, edits), Cache()
    if stop is None:
        stop = model.config.end_id
    settings = model.config.generation.replaced(
        repetition_penalty, no_repeat_ngram_size, min_new_tokens
    )
    allowed = constraints(settings, prompts.batch, n, stop)
    if num_beams == 1 or n == 0:
        new = _continue(model, prompts, n, stop, allowed, draw, cache, steps)
    else:
        new = best_beam(model, prompts, n, stop, allowed, width, Steps(model, None, edits))
    ids = prompts.with_new(new, stop)
    if keep is None:
        return ids
    read_rest(model, prompts, new, cache, steps)
    return ids, steps.trace(prompts, new, stop)


def _continue(model, prompts, n, stop, allowed, draw, cache, hook):  # -> [B n]
    """New tokens: source and prompt in one pass, then one token a pass over the cache.

    Fewer than n if every row stops early.
    """
    tokens, valid = prompts.batch.tokens, prompts.batch.valid
    given = source_arguments(prompts.source)
    new, ended = tokens[:, :0], np.zeros(len(tokens), bool)
    for _ in range(n):
        x = forward(model, tokens, valid=valid, cache=cache, hook=hook, **given)
        token = draw(allowed.apply(new, next_logits(model, x, hook)))
        if stop is not None:
            token = np.where(ended, stop, token)
            ended |= token == stop
        tokens, valid, given = token[:, None], None, {}
        new = np.concatenate([new, tokens], axis=1)
        if ended.all():
            break
    return new

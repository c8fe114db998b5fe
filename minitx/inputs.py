"""From what a user gives to checked arrays: token ids, which of them are text, their types."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .heads import read_tokens, require_padding

if TYPE_CHECKING:
    from . import arrays

Words = Sequence[str]  # of a text that is already cut
Texts = (  # a text, several, or pairs of texts
    str
    | Sequence[str]
    | Sequence[tuple[str, str]]
    | Sequence[Words]
    | Sequence[tuple[Words, Words]]
)
Ids = np.ndarray | Sequence[int] | Sequence[Sequence[int]] | Sequence[np.ndarray]  # [T] or [B T]


class Batch(NamedTuple):
    """Texts as the forward pass reads them. B texts, T tokens.

    Two texts, the first padded on the right:

    >>> import minitx
    >>> batch = minitx.load("tiny-roberta").encode(["A dog", "A dog ran"])
    >>> batch.tokens
    array([[  0,  37, 425,  75,   2,   1,   1],
           [  0,  37, 425,  75, 459, 295,   2]])
    >>> batch.valid.sum(axis=1)
    array([5, 7])
    """

    tokens: np.ndarray  # [B T] int: token ids; of pictures [B T V] float: rows of numbers
    valid: np.ndarray  # [B T] bool: False on padding
    types: np.ndarray | None  # [B T] int: token types; None: the model adds none


class TooLong(ValueError):
    """A text has more tokens than the model, or a page, takes."""


def as_model(model: "arrays.Model | str | PathLike[str]") -> "arrays.Model":
    """A Model, or the one of a name, as `minitx.load` gives it."""
    if isinstance(model, str | PathLike):
        import minitx

        return minitx.load(model)
    check_model(model)
    return model


def check_model(model):
    """Raises ValueError for what is no Model, such as a name."""
    if not hasattr(model, "preprocessor"):  # which models of other libraries do not have
        given = f"{type(model).__module__}.{type(model).__name__}".removeprefix("builtins.")
        raise ValueError(
            f"model is {model!r:.80} ({given}); expected a Model, as minitx.load gives it for a "
            "name and minitx.from_transformers for a model of torch"
        )


def as_batch(model, text, valid=None, types=None):
    """A text, a list of texts or pairs of texts, or token ids [T] or [B T], as a checked Batch."""
    check_model(model)
    if model.config.picture is not None and not is_rows(text):
        text = model.encode(images=text).tokens
    if not is_text(text):
        return check_batch(model.config, text, valid, types)
    if valid is not None or types is not None:
        raise ValueError("valid and types are for token ids; a text has its own")
    texts = [text] if isinstance(text, str) else text
    return check_batch(model.config, *model.encode(texts))


def check_source(model, source):
    """Raises ValueError if a source is missing, or given to a model that reads none."""
    check_model(model)
    if model.encoder is None and source is not None:
        text = (
            "has no encoder (its own is model.encoder)"
            if model.config.causal
            else "has a single stack"
        )
        raise ValueError(f"source given, but this model ({model.config.model_type}) {text}")
    if model.encoder is not None and source is None:
        text = f"this model ({model.config.model_type}) is an encoder-decoder"
        raise ValueError(
            f"{text}; it needs source= text or ids, in addition to the decoder's tokens"
        )


def source_arguments(batch):
    """How the Batch of a source, or None, is given to `forward`."""
    return {} if batch is None else {"source": batch.tokens, "source_valid": batch.valid}


def as_target(model, text, valid, types, source):
    """What the decoder of an encoder-decoder reads, as a checked Batch; source: a Batch.

    Token ids are taken as they are. A text becomes the start token and its own tokens but the last,
    an end token: the decoder says each token from those before it. None: the start token alone, or
    where classes are wanted the source itself, moved in the same way.
    """
    cfg = model.config
    if text is not None and not is_text(text):
        return check_batch(cfg, text, valid, types)
    if valid is not None or types is not None:
        raise ValueError("valid and types are for token ids; a text has its own")
    if text is None and cfg.task_head not in (None, "causal"):
        rows = [tokens[is_token] for tokens, is_token in zip(source.tokens, source.valid)]
        moved = [[cfg.start_id, *row[:-1]] for row in rows]  # whatever its last token is
        return check_batch(cfg, *padded(moved, cfg.pad_id))
    if text is None:
        rows = [[cfg.end_id]] * len(source.tokens)
    else:
        texts = [text] if isinstance(text, str) else text
        rows = [model.tokenizer.encode(text) for text in texts]
    return check_batch(cfg, *padded([shifted(cfg, row) for row in rows], cfg.pad_id))


def shifted(cfg, row):
    """The start token, and a row's tokens without an end token at its end."""
    row = [*row]
    return [cfg.start_id, *(row[:-1] if row[-1:] == [cfg.end_id] else row)]


def padded(rows, pad_id, left=False):
    """Rows of ids -> tokens and valid [B T]."""
    lengths = [len(row) for row in rows]
    if not all(lengths):
        raise ValueError(f"prompt {lengths.index(0)} is empty; wanted at least one token")
    T = max(lengths)
    valid = np.arange(T) < np.array(lengths)[:, None]
    if left:
        valid = valid[:, ::-1]
    tokens = np.full(valid.shape, pad_id)
    tokens[valid] = np.concatenate(rows)
    return tokens, valid


def is_rows(given):
    """Whether these are rows of numbers, and not pictures: floats in an array."""
    return getattr(given, "dtype", np.dtype(np.uint8)).kind == "f"


def is_text(given):
    """Whether it is a text, or a list that begins with a text or a pair of texts."""
    first = given[0] if isinstance(given, list | tuple) and given else given
    if isinstance(first, tuple) and first:  # ids may be rows of tuples
        first = first[0]
    return isinstance(first, str)


def check_runs(model, cache):
    """Raises ValueError for a model that cannot run, or not over a cache."""
    check_model(model)
    cfg = model.config
    if model.missing:
        missing = ", ".join(model.missing[:4])
        raise ValueError(f"a partial checkpoint cannot run; missing: {missing} …")
    if cache is not None and not cfg.causal:
        text = f"a cache needs a causal model; in {cfg.model_type} old tokens see new ones"
        raise ValueError(text)
    if cache is not None:
        mark = model.layers[-1].W_K[:1].tobytes()  # one row: this is asked for each token
        if cache.valid is not None and cache.mark != mark:
            text = "the cache holds keys of another model, or of another dtype"
            raise ValueError(f"{text}; wanted this one ({cfg.model_type}), or a new Cache()")
        cache.mark = mark


def check_batch(cfg, tokens, valid=None, types=None):
    """Token ids [T] or [B T] as a Batch. Raises ValueError for a value that does not fit.

    Of a model of pictures: rows of numbers [T V] or [B T V].
    """
    if cfg.picture is not None:
        return _check_patches(cfg, tokens, valid, types)
    tokens = whole_numbers("token ids", tokens, cfg.n_vocab)
    if tokens.ndim not in (1, 2) or not tokens.size:
        given = list(tokens.shape)
        raise ValueError(f"tokens are {given}; wanted [T] or [B T], with at least one token")
    tokens = np.atleast_2d(tokens)
    if valid is None:
        valid = np.ones(tokens.shape, bool)
    else:
        valid = np.atleast_2d(whole_numbers("valid", valid, 2, kinds="iub")).astype(bool)
        _check_shape("valid", valid, tokens)
    types = _check_types(cfg, tokens, types)
    return Batch(tokens, valid, types)


def _check_patches(cfg, tokens, valid, types):
    if types is not None:
        raise ValueError(f"types given, but {cfg.model_type} has no token types")
    check_unmasked("tokens", tokens)
    rows = np.asarray(tokens)
    if rows.dtype.kind != "f" or rows.ndim not in (2, 3) or rows.shape[-1] != cfg.n_vocab:
        given = f"{rows.dtype} {list(rows.shape)}"
        wanted = f"[T {cfg.n_vocab}] or [B T {cfg.n_vocab}], as model.encode(images=…) gives"
        raise ValueError(f"tokens are {given}; this model reads rows of numbers {wanted}")
    rows = rows.reshape(-1, *rows.shape[-2:])
    if not rows.size:
        raise ValueError(f"tokens are {list(rows.shape)}; wanted at least one token")
    ids = np.zeros(rows.shape[:2], np.intp)  # of the shape that valid must have
    return check_batch(replace(cfg, picture=None), ids, valid)._replace(tokens=rows)


def _check_types(cfg, tokens, types):
    if types is not None and not cfg.n_types:
        raise ValueError(f"types given, but {cfg.model_type} has no token types")
    if types is None and cfg.default_type is None:
        return None
    if types is None:
        types = np.full(tokens.shape, cfg.default_type)
    types = np.atleast_2d(whole_numbers("token types", types, cfg.n_types))
    _check_shape("types", types, tokens)
    return types


def _check_shape(name, array, tokens):
    if array.shape != tokens.shape:
        given, wanted = list(array.shape), list(tokens.shape)
        raise ValueError(f"{name} is {given}; wanted the shape of tokens, {wanted}")


def check_positions(positions, shape, n=1 << 31, *, axis="T", name="tokens"):
    """positions [T] or [B T], whole numbers below n, as [1 T] or [B T]; shape: [B T] of the tokens.

    Raises ValueError for others. axis, name: what the error calls the tokens.
    """
    positions = whole_numbers("positions", positions, n)
    if positions.shape not in (shape, shape[1:]):
        given, wanted = list(positions.shape), f"[{axis}] or [B {axis}] for {name} {list(shape)}"
        raise ValueError(f"positions are {given}; wanted {wanted}")
    return np.atleast_2d(positions)


def check_unmasked(name, values):
    """Raises ValueError for masked entries, whose mask would be dropped."""
    if n := np.ma.count_masked(values) if isinstance(values, np.ma.MaskedArray) else 0:
        raise ValueError(f"{name}: {n} entries of a masked array are masked; wanted none")


def whole_numbers(name, values, n, kinds="iu"):
    """Values as an index array. Raises ValueError unless all are whole numbers from 0 to n - 1."""
    if type(values) is not np.ndarray:
        check_unmasked(name, values)
    try:
        array = np.asarray(values)
    except ValueError:
        text = "come in rows of different lengths; pad them (model.encode does)"
        raise ValueError(f"{name} {text}") from None
    if array.size and array.dtype.kind not in kinds:
        raise ValueError(f"{name} are {array.dtype}; wanted whole numbers")
    outside = array[(array < 0) | (array >= n)]
    if outside.size:
        raise ValueError(f"{name}: {outside[0]} is out of range; wanted 0 to {n - 1}")
    return array.astype(np.intp)


def head_tokens(cfg, tokens, valid):  # -> [B T] bool, or None
    """Which tokens the head reads, by their ids if there are any."""
    if tokens is None:
        return valid
    batch = check_batch(cfg, tokens, valid)
    if valid is None:
        require_padding(cfg, batch)
    return read_tokens(cfg, batch)


def asked_tokens(cfg, text, valid, batch, source):  # -> [B T] bool
    """The same of a text or ids as a user gives them, and of the Batches that were made of them."""
    if valid is None and not is_text(text):
        require_padding(cfg, batch)
    return read_tokens(cfg, batch, source)

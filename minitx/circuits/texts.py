"""Pairs of texts, clean and corrupt, that align token by token, as batches for a model.

The same for single texts. Texts of a causal model are padded on the left, so that the last column
is the last place of each. N: texts, or pairs of them.
"""

from typing import Any, NamedTuple

import numpy as np

from .. import inputs
from ..heads import read_tokens, require_head
from ..inputs import Batch, as_target, check_batch, is_text, padded, source_arguments
from ..machine.mapped import require_arrays
from ..trace import Trace, run


class Inputs(NamedTuple):
    """What one pass over several texts reads."""

    batch: Batch
    source: Batch | None  # of an encoder-decoder; the batch is then its decoder's

    @property
    def texts(self) -> Batch:
        """The side that the texts were given for."""
        return self.batch if self.source is None else self.source

    def run(self, model, keep, edits=None) -> Trace:
        """The pass, as `minitx.run` records it."""
        return run(model, self.batch.tokens, keep, edits, **self.options())

    def options(self):
        """What `run` and `forward` take beside the tokens."""
        own = dict(valid=self.batch.valid, types=self.batch.types)
        return own | source_arguments(self.source)

    def head_tokens(self, model) -> np.ndarray:  # [N T] bool
        """Which tokens the head reads."""
        return read_tokens(model.config, self.batch, self.source)

    def rows(self, index) -> "Inputs":
        """Some of the texts, or each several times, by number."""
        return Inputs(_rows(self.batch, index), _rows(self.source, index))

    def with_texts(self, tokens) -> "Inputs":
        """The same with other tokens where the texts are."""
        if self.source is None:
            return Inputs(self.batch._replace(tokens=tokens), None)
        return Inputs(self.batch, self.source._replace(tokens=tokens))


class Pairs(NamedTuple):
    """Texts that differ in what is asked, and in nothing else."""

    clean: Inputs
    corrupt: Inputs

    def __len__(self):
        return len(self.clean.batch.tokens)


def _rows(batch, index):
    if batch is None:
        return None
    return Batch(*(None if x is None else x[index] for x in batch))


def read_pairs(model, clean, corrupt, prefix=None) -> Pairs:
    """Lists of texts, or of rows of token ids, or a Batch of either side, as Pairs.

    prefix: what the decoder of an encoder-decoder has said; the texts are then sources. Raises
    ValueError that names the first pair whose texts have different numbers of tokens.
    """
    check_model(model)
    sides = [read_texts(model, texts, prefix) for texts in (clean, corrupt)]
    clean, corrupt = _as_list(clean), _as_list(corrupt)
    if len(clean) != len(corrupt):
        raise ValueError(f"{len(clean)} clean texts and {len(corrupt)} corrupt ones; wanted pairs")
    lengths = [side.texts.valid.sum(axis=1) for side in sides]
    for i, (n, other) in enumerate(zip(*lengths)):
        if n != other:
            raise ValueError(
                f"pair {i} does not align: {clean[i]!r:.60} is {n} tokens, {corrupt[i]!r:.60} is "
                f"{other}; wanted pairs with the same number of tokens"
            )
    return Pairs(*sides)


def check_model(model):
    """Raises ValueError for no Model, or one without task head, or with weights in their file."""
    inputs.check_model(model)
    require_head(model)
    require_arrays(model, "circuits")


def read_texts(model, texts, prefix=None) -> Inputs:
    """Texts, or rows of ids, as Inputs; of an encoder-decoder they are what its encoder reads."""
    if model.encoder is None:
        if prefix is not None:
            name = model.config.model_type
            raise ValueError(f"prefix given, but this model ({name}) has no encoder and decoder")
        return Inputs(_batch(model, texts), None)
    source = _batch(model.encoder, texts, model)
    return Inputs(_decoder_batch(model, prefix, source), source)


def _decoder_batch(model, prefix, source):
    """What the decoder reads for each source; one prefix serves all of them."""
    n = len(source.tokens)
    if isinstance(prefix, str):
        prefix = [prefix] * n
    elif prefix is not None and np.ndim(prefix[0]) == 0 and not is_text(prefix):
        prefix = np.tile(prefix, (n, 1))
    batch = as_target(model, prefix, None, None, source)
    if len(batch.tokens) != n:
        raise ValueError(f"{len(batch.tokens)} prefixes for {n} sources; wanted one for each")
    return batch


def _batch(model, texts, reader=None):
    """Texts, rows of ids, or a Batch of `model.encode` as a checked, padded Batch."""
    cfg = model.config
    if isinstance(texts, Batch):
        return check_batch(cfg, *texts)
    texts = _as_list(texts)
    if is_text(texts):
        side = "left" if cfg.causal else "right"
        return check_batch(cfg, *(reader or model).encode(texts, side))
    return check_batch(cfg, *padded(texts, cfg.pad_id, left=cfg.causal))


def _as_list(texts: Any) -> list:
    """One text, or the ids of one, as a list of one; several as a list."""
    if isinstance(texts, Batch):
        return [*texts.tokens]
    if isinstance(texts, str):
        return [texts]
    if not hasattr(texts, "__len__"):
        raise ValueError(f"texts are {texts!r:.80}; expected a text, ids, or a list of either")
    if not is_text(texts) and len(texts) and np.ndim(texts[0]) == 0:
        return [np.asarray(texts)]
    if not len(texts):
        raise ValueError("no texts; wanted at least one")
    return [*texts]

"""Keys and values already seen by a causal model, so that prefill and decoding are one path."""

import numpy as np

from .machine import show

LEAST = 64  # tokens that a new cache has room for; the room is doubled whenever it is full


class Cache(show.Shown):
    """Keys and values of the tokens so far; every `forward(..., cache=cache)` appends new ones.

    len(cache) is the number of tokens in it, padding included. In an encoder-decoder the first call
    also stores the source; later calls need none. Arrays are [B H S d], S: cached and new tokens.

    Two tokens are cached; the third, run alone, gets the same row as in a run of all three:

    >>> import minitx
    >>> model = minitx.load("tiny-gpt2")
    >>> cache = minitx.Cache()
    >>> before = minitx.forward(model, [37, 425], cache=cache)
    >>> last = minitx.forward(model, [75], cache=cache)
    >>> len(cache), np.allclose(last[0, 0], minitx.forward(model, [37, 425, 75])[0, 2], atol=1e-5)
    (3, True)
    """

    _summary = show.cache
    stored: dict[int, np.ndarray]  # layer -> keys and values [2 B H capacity d]
    tokens: np.ndarray | None  # [B len(cache)], where they may have to run again (longer.py)
    valid: np.ndarray | None  # [B len(cache)] bool: False on padding

    def __init__(self):
        self.stored = {}
        # mark: a row of the model's last W_K; source: a Source (model.py)
        self.tokens = self.valid = self.mark = self.source = None

    def __len__(self) -> int:
        return 0 if self.valid is None else self.valid.shape[1]

    def with_new(self, valid):  # [B T] -> [B S]
        """`valid` of the tokens held and of these new ones; the cache itself stays as it is."""
        if self.valid is None:
            return valid
        if len(valid) != len(self.valid):
            text = f"the cache holds a batch of {len(self.valid)}, the new tokens are {len(valid)}"
            raise ValueError(text)
        return np.concatenate([self.valid, valid], axis=1)

    def append(self, layer, k, v):  # [B H T d] twice -> [B H S d] twice
        """Store one layer's new keys and values -> views of all, old and new.

        The cache has the new tokens only when `forward` sets `valid` at its end: a pass that is
        interrupted leaves the cache as it was.
        """
        n_old = len(self)
        n_all = n_old + k.shape[2]
        if n_old == 0 or self.stored[layer].shape[3] < n_all:
            self._grow(layer, k, n_old, n_all)
        held = self.stored[layer]
        held[:, :, :, n_old:n_all] = k, v
        return held[0, :, :, :n_all], held[1, :, :, :n_all]

    def take(self, rows: list[int] | np.ndarray) -> None:
        """Keep these texts of the batch, in this order; a text may be left out, or repeated.

        The source, which may have other rows, stays as it is.
        """
        self.stored = {layer: held[:, rows] for layer, held in self.stored.items()}
        if self.valid is not None:
            self.valid = self.valid[rows]
        if self.tokens is not None:
            self.tokens = self.tokens[rows]

    def _grow(self, layer, k, n_old, n_all):
        B, H, _, d = k.shape
        grown = np.empty((2, B, H, max(LEAST, 2 * n_all), d), k.dtype)
        if n_old:
            grown[:, :, :, :n_old] = self.stored[layer][:, :, :, :n_old]
        self.stored[layer] = grown

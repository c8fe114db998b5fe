"""Keys and values already seen by a causal model, so that prefill and decoding are one path."""
import numpy as np


class Cache:
    """Empty at first; every `forward(..., cache=c)` appends its tokens, of any number, to every row of the batch.

    `len(cache)` is the number of columns S held, padding included; `.valid` [B S] says which are text.
    """

    def __init__(self):
        self.keys, self.values = {}, {}  # layer -> [B H capacity d]
        self.valid = None                # [B S] bool

    def __len__(self):
        return 0 if self.valid is None else self.valid.shape[1]

    def with_new(self, valid):  # [B T] -> [B S+T]
        """Which columns are text once these have come in; the cache itself stays as it is."""
        if self.valid is None:
            return valid
        if len(valid) != len(self.valid):
            raise ValueError(f"the cache holds a batch of {len(self.valid)}; the new tokens are a batch of {len(valid)}")
        return np.concatenate([self.valid, valid], 1)

    def append(self, layer, k, v):  # [B H T d], [B H T d] -> [B H S d], [B H S d]
        """Store one layer's new keys and values behind the old ones; views of all of them."""
        return self._put(self.keys, layer, k), self._put(self.values, layer, v)

    def _put(self, store, layer, new):
        total = len(self)  # forward has counted the new tokens in
        old = total - new.shape[2]
        if layer not in store or store[layer].shape[2] < total:
            grown = np.empty((*new.shape[:2], max(64, 2 * total), new.shape[3]), new.dtype)
            grown[:, :, :old] = store[layer][:, :, :old] if old else 0
            store[layer] = grown
        store[layer][:, :, old:total] = new
        return store[layer][:, :, :total]

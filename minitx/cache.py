"""Keys and values already seen by a causal model, so that prefill and decoding are one path."""
import numpy as np

class Cache:
    """Empty at first; every `forward(..., cache=c)` appends its tokens. len(cache): columns S held, with padding."""
    def __init__(self): self.stored, self.valid = {}, None  # layer -> k, v [2 B H capacity d]; what is text [B S]

    def __len__(self): return 0 if self.valid is None else self.valid.shape[1]

    def with_new(self, valid):  # [B T] -> [B S+T], once these have come in; the cache itself stays as it is
        if self.valid is not None and len(valid) != len(self.valid):
            raise ValueError(f"the cache holds a batch of {len(self.valid)}, the new tokens are {len(valid)}")
        return valid if self.valid is None else np.concatenate([self.valid, valid], 1)

    def append(self, layer, k, v):  # one layer's [B H T d], stored behind the old ones -> views of all, [B H S d]
        S, old = len(self), len(self) - k.shape[2]  # forward has counted the new tokens in
        if old == 0 or self.stored[layer].shape[3] < S:
            grown = np.empty((2, *k.shape[:2], max(64, 2 * S), k.shape[3]), k.dtype)
            grown[:, :, :, :old] = self.stored[layer][:, :, :, :old] if old else 0
            self.stored[layer] = grown
        self.stored[layer][:, :, :, old:S] = k, v
        return self.stored[layer][:, :, :, :S]

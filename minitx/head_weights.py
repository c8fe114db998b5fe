"""The arrays of attention by head, in every family.

Several consecutive heads may share keys and values (Ainslie et al. 2023). Queries and keys may be
normed, all heads together (OLMo 2) or each by itself (Qwen3), biases included: the norm's gain then
belongs to the weights that scores are made of. A head that was pruned has zeros. H heads, G heads
of keys and values, d width of a head; other axis letters: see model.py.
"""

import numpy as np

from .kernels import linear, split_heads
from .model import identity, limited, placed


def key_head(cfg, head):
    """The number of the keys and values that a head reads."""
    group = cfg.n_heads // cfg.n_kv
    return head // group


def columns(head, cfg):
    """The features of one head."""
    d = cfg.d_head
    return slice(head * d, (head + 1) * d)


def for_each_head(x, n_heads, axis=0):  # [... G ...] -> [... H ...]
    """Keys or values, those that heads share once for each of these heads."""
    n_kv = x.shape[axis]
    if n_kv == n_heads:
        return x
    return np.repeat(x, n_heads // n_kv, axis)


def matrices(w, cfg, letter):  # -> [H D d]
    """W_Q, W_K or W_V of each head, with the gain of a norm of queries or keys."""
    W = getattr(w, f"W_{letter}")
    W = _with_gain(np.asarray(W), w, letter)
    by_head = W.reshape(len(W), -1, cfg.d_head).swapaxes(0, 1)
    return for_each_head(by_head, cfg.n_heads)


def biases(w, cfg, letter):  # -> [H d]
    """The biases that belong to `matrices`; zeros where there are none."""
    b = getattr(w, f"b_{letter}")
    if b is None:
        W = getattr(w, f"W_{letter}")
        b = np.zeros(W.shape[1], W.dtype)
    b = _with_gain(np.asarray(b), w, letter)
    by_head = b.reshape(-1, cfg.d_head)
    return for_each_head(by_head, cfg.n_heads)


def outputs(W_O, n_heads):  # [A D] -> [H d D]
    """The output matrix of each head."""
    W_O = np.asarray(W_O)
    return W_O.reshape(n_heads, -1, W_O.shape[1])


def projected(x, w, cfg, letter):  # [B T D] -> [B H T d], or [B G T d]
    """Queries, keys or values of a stream, limited and normed as the model does, before a turn."""
    W = getattr(w, f"W_{letter}")
    b = getattr(w, f"b_{letter}")
    y = linear(x, W, b)
    if cfg.qkv_limit:
        y = limited(y, cfg)
    if letter == "V":
        return split_heads(y, cfg)
    return placed(letter.lower(), y, w, cfg, identity)


def _with_gain(x, w, letter):  # [... A] -> [... A]
    """A weight or bias times the gain of the norm that its product passes."""
    held = vars(w)
    for kind in ("ln_all", "ln"):
        gain = held.get(f"{kind}_{letter.lower()}_w")
        if gain is not None:
            x = x * np.resize(gain, x.shape[-1])  # of one head: the same for each
    return x

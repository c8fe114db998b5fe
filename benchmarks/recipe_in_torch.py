"""One step of tiny-roberta's recipe in PyTorch: the model as a function of named weights, AdamW.

The names are those of the file. Logits are computed where a word is to be predicted, and nowhere
else; plain products train faster on a CPU than the fused attention.
"""

import torch
import torch.nn.functional as F

from minitx.weights.training.recipe import HOW

LAYERS, HEADS, OFFSET, EPS = 4, 4, 2, 1e-5


def linear(w, name, x):
    """x Wᵀ + b."""
    return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def norm(w, name, x):
    """LayerNorm."""
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], EPS)


def attention(w, layer, x):
    """What a layer's heads write before W_O, [B T D]."""
    parts = (linear(w, f"{layer}.attention.self.{part}", x) for part in ("query", "key", "value"))
    q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return (torch.softmax(scores, -1, dtype=scores.dtype) @ v).transpose(1, 2).flatten(2)


def logits(w, ids, places):
    """Logits [N V] at N flat places of ids [B T]."""
    embeddings = "roberta.embeddings"
    W_E = w[f"{embeddings}.word_embeddings.weight"]
    rows = w[f"{embeddings}.position_embeddings.weight"][OFFSET : OFFSET + ids.shape[1]]
    x = F.embedding(ids, W_E) + rows + w[f"{embeddings}.token_type_embeddings.weight"][0]
    x = norm(w, f"{embeddings}.LayerNorm", x)
    for i in range(LAYERS):
        layer = f"roberta.encoder.layer.{i}"
        z = linear(w, f"{layer}.attention.output.dense", attention(w, layer, x))
        x = norm(w, f"{layer}.attention.output.LayerNorm", x + z)
        post = F.gelu(linear(w, f"{layer}.intermediate.dense", x))
        x = norm(w, f"{layer}.output.LayerNorm", x + linear(w, f"{layer}.output.dense", post))
    x = F.gelu(linear(w, "lm_head.dense", x.flatten(0, 1)[places]))
    return F.linear(norm(w, "lm_head.layer_norm", x), W_E, w["lm_head.bias"])


class Recipe:
    """Weights that learn; products in float32, or in bfloat16."""

    def __init__(self, w, is_bfloat16):
        self.w = {name: x.float().requires_grad_() for name, x in w.items()}
        self.is_bfloat16 = is_bfloat16
        groups = []
        for n_axes, decay in ((1, 0.0), (2, HOW.decay)):
            arrays = [x for x in self.w.values() if x.ndim == n_axes]
            groups.append({"params": arrays, "weight_decay": decay})
        settings = {"lr": 1e-5, "betas": HOW.betas, "eps": HOW.eps}
        self.optimizer = torch.optim.AdamW(groups, fused=True, **settings)

    def step(self, ids, places, targets):
        """One step; returns the loss."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.is_bfloat16):
            y = logits(self.w, ids, places)
        loss = F.cross_entropy(y.float(), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.w.values(), HOW.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

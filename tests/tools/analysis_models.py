"""Tiny random checkpoints with a real tokenizer, written where a test wants them."""

import json
import re
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

TOKENIZER = Path(__file__).parents[2] / "weights/tiny-roberta/tokenizer.json"
L, H, D, M, T = 2, 3, 24, 40, 32


def gpt2(folder, head=True):
    """A causal model; head=False leaves the architecture's language-model head out."""
    V = Tokenizer.from_file(str(TOKENIZER)).get_vocab_size()
    config = dict(model_type="gpt2", architectures=["GPT2LMHeadModel" if head else "GPT2Model"])
    config |= dict(activation_function="gelu_new", layer_norm_epsilon=1e-5, vocab_size=V)
    config |= dict(n_layer=L, n_head=H, n_embd=D, n_inner=M, n_positions=T)
    folder.mkdir(exist_ok=True)
    save_file(random_tensors(shapes(V)), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    plain = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    plain["post_processor"] = None  # adds no special tokens, as GPT-2's
    (folder / "tokenizer.json").write_text(json.dumps(plain), encoding="utf-8")
    return folder


MODULES = {
    "ln_1": (D,),
    "attn.c_attn": (D, 3 * D),
    "attn.c_proj": (D, D),
    "ln_2": (D,),
    "mlp.c_fc": (D, M),
    "mlp.c_proj": (M, D),
}


def shapes(V):
    """{name: shape} of all tensors for a vocabulary of V."""
    sizes = {"wte.weight": (V, D), "wpe.weight": (T, D), "ln_f.weight": (D,), "ln_f.bias": (D,)}
    for i in range(L):
        for name, shape in MODULES.items():
            sizes |= {f"h.{i}.{name}.weight": shape, f"h.{i}.{name}.bias": shape[-1:]}
    return sizes


def random_tensors(sizes, seed=5):
    """Random values; the weights of norms lie around 1."""
    draw, tensors = np.random.default_rng(seed), {}
    for name, shape in sizes.items():
        around = bool(re.search(r"(norm|ln_\w)\.weight$", name))
        tensors[name] = (around + 0.3 * draw.standard_normal(shape)).astype(np.float32)
    return tensors

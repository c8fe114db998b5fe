"""Tiny random checkpoints with a real tokenizer, written where a test wants them."""
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

TOKENIZER = Path(__file__).parents[1] / "weights/tiny-roberta/tokenizer.json"
L, H, D, M, T = 2, 3, 24, 40, 32


def gpt2(folder, head=True):
    """A causal model; head=False leaves the architecture's language-model head out."""
    V = Tokenizer.from_file(str(TOKENIZER)).get_vocab_size()
    draw = np.random.default_rng(5)
    shapes = {"wte.weight": (V, D), "wpe.weight": (T, D), "ln_f.weight": (D,), "ln_f.bias": (D,)}
    for i in range(L):
        for name, shape in (("ln_1", (D,)), ("attn.c_attn", (D, 3 * D)), ("attn.c_proj", (D, D)),
                            ("ln_2", (D,)), ("mlp.c_fc", (D, M)), ("mlp.c_proj", (M, D))):
            shapes |= {f"h.{i}.{name}.weight": shape, f"h.{i}.{name}.bias": shape[-1:]}
    tensors = {name: (draw.standard_normal(shape) * 0.3 + name.endswith(".weight") * (len(shape) == 1)
                      ).astype(np.float32) for name, shape in shapes.items()}
    config = dict(model_type="gpt2", architectures=["GPT2LMHeadModel" if head else "GPT2Model"], n_layer=L,
                  n_head=H, n_embd=D, n_inner=M, n_positions=T, layer_norm_epsilon=1e-5, vocab_size=V,
                  activation_function="gelu_new")
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    plain = json.loads(TOKENIZER.read_text(encoding="utf-8"))
    plain["post_processor"] = None  # adds no special tokens, as GPT-2's
    (folder / "tokenizer.json").write_text(json.dumps(plain), encoding="utf-8")
    return folder

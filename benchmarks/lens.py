"""A GPT-2 of a folder in TransformerLens, and the names of its edges as minitx has them."""

from collections import defaultdict

import numpy as np

from minitx import weights

NODES = {"attn_head_out": "head", "mlp_out": "mlp", "mlp_in": "mlp"}
NODES |= {f"{letter}_input": letter for letter in "qkv"}


def bridge(folder, dtype, **how):
    """A GPT-2 of a folder in TransformerLens, which is given ids."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.model_bridge.sources import _hf_format
    from transformers import GPT2LMHeadModel

    _hf_format.get_tokenizer_with_bos = lambda tokenizer: tokenizer  # else loaded from a hub
    whole = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager")
    options = {"hf_model": whole.to(dtype).eval(), "tokenizer": tokenizer()}
    system = TransformerBridge.boot_transformers("gpt2", dtype=dtype, **options)
    system.enable_compatibility_mode(disable_warnings=True, **how)
    system.to_tokens = lambda ids, **_: ids  # they are ids already
    return system.eval()


def tokenizer():
    """One that both kits ask for, where ids alone are given."""
    from transformers import PreTrainedTokenizerFast

    file = weights.find("tiny-gpt2") / "tokenizer.json"
    given = PreTrainedTokenizerFast(tokenizer_file=str(file))
    given.pad_token = given.eos_token = given.bos_token = given.decode([0])
    return given


def edges(scored):
    """{name of an edge: score}; those of each place are added up."""
    sums = defaultdict(float)
    for edge, score in scored.edge_scores.items():
        sums[tuple(named(node) for node in edge)] += float(score)
    return sums


def is_z(name):
    """Whether a point of TransformerLens is the heads' output."""
    return name.endswith("hook_z")


def named(node):
    """A node of TransformerLens as minitx names it."""
    name = NODES.get(node.kind, node.kind)
    return name, None if name == "logits" else node.layer, node.head


def sorted_by_name(scores):
    """Scores {name: score} in the order of their names."""
    return np.array([scores[name] for name in sorted(scores, key=str)])

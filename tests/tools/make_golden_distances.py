"""Makes the models of tests/golden whose scores have terms of place: DeBERTa and DeBERTa v2.

Folders hold what those of make_golden.py do; buckets-deberta.safetensors beside them has the
library's bucket of every distance, for the settings of published checkpoints. What the library
rounds to float32 in a float64 model, the root that scores are divided by and the norms of the first
version, is computed in float64 (`in_float64` of make_golden_places.py).

Each term of the scores is the library's own: its method is called with one kind of term at a time.
"""

import re
from functools import partial

import make_golden as single
import make_golden_places as places
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

BOTH = dict(
    vocab_size=23,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=10,
    max_position_embeddings=12,
    relative_attention=True,
    pos_att_type="c2p|p2c",
    position_biased_input=False,
)
V3 = dict(share_att_key=True, norm_rel_ebd="layer_norm")
V3 |= dict(position_buckets=4, max_relative_positions=10)
T = 10, 6  # tokens of the two texts


LOOKS = dict(norm="LayerNorm", words="embeddings", head="classifier|qa_outputs", gains=(1.9, 5))
DISK = single.DISK | {"no-prefix": single.renamed(r"^deberta\.", "")}


def watch(model, every, seen):
    single.watch(model, every, seen)
    for name, module in model.named_modules():
        if match := re.search(r"layer\.(\d+)\.attention\.self$", name):
            watch_attention(module, match[1], every, seen)


def watch_attention(attention, layer, every, seen):
    """Queries, keys, values; and, if every point is asked for, the terms of the scores."""
    is_first = hasattr(attention, "in_proj")
    n_heads = attention.num_attention_heads

    def file(point, x):
        seen.setdefault(f"{point}.{layer}", x)  # v2 may read its table by the same matrices

    def fused(module, args, out):
        of_heads = attention.transpose_for_scores(out)[0].chunk(3, -1)
        for point, x in zip("qkv", of_heads):
            bias = getattr(attention, f"{point}_bias", None)  # of keys there is none
            own = 0 if bias is None else attention.transpose_for_scores(bias[None, None])[0]
            file(point, x + own)

    if is_first:
        attention.in_proj.register_forward_hook(fused)
    else:
        for point, own in zip("qkv", ("query_proj", "key_proj", "value_proj")):
            getattr(attention, own).register_forward_hook(
                lambda m, args, out, p=point: file(p, single.heads(out, n_heads))
            )
    if every and attention.relative_attention:
        watch_terms(attention, layer, is_first, seen)


def watch_terms(attention, layer, is_first, seen):
    """The terms, from the library's method asked for one kind at a time; and what they are of."""
    name = "disentangled_att_bias" if is_first else "disentangled_attention_bias"
    plain = getattr(attention, name)
    kinds, n_heads = attention.pos_att_type, attention.num_attention_heads
    own = {"c2p": ("pos_proj", "pos_key_proj", "key_proj", "k_pos")}
    own["p2c"] = ("pos_q_proj", "pos_query_proj", "query_proj", "q_pos")

    def watched(query, key, relative_pos, rel_embeddings, scale_factor):
        given = query, key, relative_pos, rel_embeddings, scale_factor
        shape = n_heads, *query.shape[-2:]
        q, k = query.reshape(shape), key.reshape(shape)
        scale = 1 if is_first else (q.shape[-1] * scale_factor) ** -0.5
        seen[f"c2c.{layer}"] = q @ k.transpose(-1, -2) * scale
        seen["dist_embed"] = rel_embeddings
        span = len(rel_embeddings) // 2
        seen["pos_row"] = (relative_pos[0] + span).clamp(0, 2 * span - 1).double()
        for kind in kinds:
            attention.pos_att_type = [kind]
            seen[f"{kind}.{layer}"] = plain(*given).reshape(n_heads, *seen["pos_row"].shape)
            *names, point = own[kind]
            module = next(getattr(attention, n) for n in names if hasattr(attention, n))
            seen[f"{point}.{layer}"] = single.heads(module(rel_embeddings[None]), n_heads)
        attention.pos_att_type = kinds
        return plain(*given)

    setattr(attention, name, watched)


def inputs(model, words, rng):
    texts = [dict(tokens=rng.integers(3, 22, n)) for n in T]
    n_ctx = model.config.max_position_embeddings
    return single.given(model.config, texts, words, rng, lambda n: n_ctx)


SETTINGS = ((256, 512), (32, 128), (16, 128), (6, 10), (4, 10), (3, 12), (2, 10))


def files(golden):
    """buckets-deberta.safetensors: "half.largest" [2 N + 1], buckets of the distances -N to N."""
    tables = {}
    for half, largest in SETTINGS:
        n = 2 * largest
        distances = torch.arange(-n, n + 1)
        rows = make_log_bucket_position(distances, half, largest).long()
        tables[f"{half}.{largest}"] = rows.to(torch.int16).numpy()
    single.save_arrays(tables, golden / "buckets-deberta.safetensors")


STEPS = {
    "draw": partial(single.drawn, **LOOKS),
    "inside": places.in_float64,
    "watch": watch,
    "inputs": inputs,
}
MAKER = single.Maker({"Deberta": BOTH}, DISK, **STEPS, more=places.more, files=files)

"""The small models in torch, each a function of named weights; the names are those of a file.

Read downward: shapes and first weights; parts that the models share; GPT-2's layout, that of BERT
and RoBERTa, that of ModernBERT. How a place enters is the recipe's `place` (places.py): where it
is not a learned table, the table of the first two layouts holds fixed rows, mostly zeros. A recipe
has `family` (the layout), `place`, `layers`, `width`, `heads`, `eps`, `offset`, `writers`.
"""

from dataclasses import replace

import numpy as np

from minitx.weights.training import places
from minitx.weights.training.torches import F, torch

VOCAB = 1024
INIT = 0.08  # deviation of the first weights
WRITERS = ".output.dense", "c_proj", ".Wo"  # the matrices that write to the stream
BUCKETS = "roberta.encoder.relative_attention_bias.weight"
DISTANCES = "roberta.encoder.rel_embeddings.weight"  # DeBERTa's table
DISTANCES_NORM = "roberta.encoder.LayerNorm"  # of v2's
EMBED_NORM = "transformer.word_embeddings_layernorm"  # BLOOM has it, GPT-2 has not


# ---- shapes and first weights


def shapes(recipe, context):
    """{name: shape} of all weights as in the file.

    Matrices are [in out] for GPT-2, [out in] for the others.
    """
    if recipe.family == "modernbert":
        return parts_modernbert(recipe)
    if recipe.family == "gpt2":
        tables, modules = parts_gpt2(recipe, context)
        out, head_bias = -1, {}
    else:
        tables, modules = parts_bert(recipe, context)
        out, head_bias = 0, {head_names(recipe.family)[2]: (VOCAB,)}
    weights = {f"{name}.weight": shape for name, shape in (tables | modules).items()}
    biases = {f"{name}.bias": (shape[out],) for name, shape in modules.items()}
    relative = {BUCKETS: (places.N_BUCKETS, recipe.heads)} if recipe.place == "buckets" else {}
    if recipe.place == "disentangled":  # keys have no bias there
        biases = {name: shape for name, shape in biases.items() if ".key." not in name}
    return weights | biases | head_bias | relative | disentangled(recipe)


def disentangled(recipe):
    """{name: shape} of what DeBERTa has beside: its table of distances, and what reads it."""
    D = recipe.width
    if recipe.place == "disentangled-buckets":
        norm = {f"{DISTANCES_NORM}.{part}": (D,) for part in ("weight", "bias")}
        return {DISTANCES: (places.N_BUCKETS, D)} | norm
    if recipe.place != "disentangled":
        return {}
    own = {"pos_proj.weight": (D, D), "pos_q_proj.weight": (D, D), "pos_q_proj.bias": (D,)}
    layers = in_every_layer("roberta.encoder.layer", own, recipe.layers)
    names = {name.replace(".pos_", ".attention.self.pos_"): of for name, of in layers.items()}
    return {DISTANCES: (2 * places.FARTHEST, D)} | names


def parts_gpt2(recipe, context):
    """Shapes of GPT-2's embedding tables, and of the modules that have a bias: {name: shape}."""
    V, D, M, P = VOCAB, recipe.width, 4 * recipe.width, context + recipe.offset
    tables = {"transformer.wte": (V, D), "transformer.wpe": (P, D)}
    layer = {"ln_1": (D,), "attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D)}
    layer |= {"ln_2": (D,), "mlp.c_fc": (D, M), "mlp.c_proj": (M, D)}
    modules = in_every_layer("transformer.h", layer, recipe.layers)
    after_embedding = {EMBED_NORM: (D,)} if recipe.place == "alibi" else {}
    return tables, modules | {"transformer.ln_f": (D,)} | after_embedding


def parts_bert(recipe, context):
    """The same for BERT and RoBERTa."""
    V, D, M, P = VOCAB, recipe.width, 4 * recipe.width, context + recipe.offset
    embeddings = f"{recipe.family}.embeddings"
    tables = {f"{embeddings}.word_embeddings": (V, D)}
    tables[f"{embeddings}.position_embeddings"] = (P, D)
    tables[f"{embeddings}.token_type_embeddings"] = (2 if recipe.family == "bert" else 1, D)
    layer = {f"attention.self.{part}": (D, D) for part in ("query", "key", "value")}
    layer |= {"attention.output.dense": (D, D), "attention.output.LayerNorm": (D,)}
    layer |= {"intermediate.dense": (M, D), "output.dense": (D, M), "output.LayerNorm": (D,)}
    modules = in_every_layer(f"{recipe.family}.encoder.layer", layer, recipe.layers)
    dense, ln, _ = head_names(recipe.family)
    return tables, modules | {f"{embeddings}.LayerNorm": (D,), dense: (D, D), ln: (D,)}


def parts_modernbert(recipe):
    """Shapes of all of ModernBERT's weights; layer 0 has no norm before its attention."""
    V, D, M = VOCAB, recipe.width, 8 * recipe.width // 3 // 8 * 8  # the MLP has three matrices
    layer = {"attn_norm": (D,), "attn.Wqkv": (3 * D, D), "attn.Wo": (D, D)}
    layer |= {"mlp_norm": (D,), "mlp.Wi": (2 * M, D), "mlp.Wo": (D, M)}
    parts = {"model.embeddings.tok_embeddings": (V, D), "model.embeddings.norm": (D,)}
    parts |= in_every_layer("model.layers", layer, recipe.layers)
    parts |= {"model.final_norm": (D,), "head.dense": (D, D), "head.norm": (D,)}
    del parts["model.layers.0.attn_norm"]
    weights = {f"{name}.weight": shape for name, shape in parts.items()}
    return weights | {"decoder.bias": (V,)}


def in_every_layer(prefix, layer, n):
    """The shapes of one layer under the names of n layers."""
    return {f"{prefix}.{i}.{name}": shape for i in range(n) for name, shape in layer.items()}


def head_names(family):
    """Names of the masked-LM head's dense layer, norm and output bias."""
    if family == "bert":
        head = "cls.predictions"
        return f"{head}.transform.dense", f"{head}.transform.LayerNorm", f"{head}.bias"
    return "lm_head.dense", "lm_head.layer_norm", "lm_head.bias"


def position_name(recipe):
    """Name of the position table."""
    if recipe.family == "gpt2":
        return "transformer.wpe.weight"
    return f"{recipe.family}.embeddings.position_embeddings.weight"


def initial(recipe, context, layers, rng):
    """Fresh weights for that context and depth: matrices of deviation INIT, biases 0, norms 1."""
    weights = {}
    for name, shape in shapes(replace(recipe, layers=layers), context).items():
        if len(shape) == 2:
            values = INIT * rng.standard_normal(shape)
            values *= recipe.writers if name.removesuffix(".weight").endswith(WRITERS) else 1.0
        else:
            values = np.full(shape, name.endswith("weight"))
        weights[name] = torch.tensor(values, dtype=torch.float32)
    if recipe.place == "alibi":
        weights[f"{EMBED_NORM}.weight"] *= INIT  # the stream begins as large as without this norm
    if recipe.place == "learned":
        weights[position_name(recipe)][: recipe.offset] = 0
    weights = {name: p.requires_grad_() for name, p in weights.items()}
    return weights | fixed_rows(recipe, context)


def reach(recipe, w):
    """The longest input that there are position rows for."""
    if recipe.family == "modernbert":
        return recipe.stages[-1][0]
    return len(w[position_name(recipe)]) - recipe.offset


def fixed_rows(recipe, context):
    """{name: rows} of what is not trained where places do not enter by a learned table.

    Sinusoids have the size of a fresh learned table, any other table is 0. So is RoBERTa's one row
    of a token type, which would be a constant of its own there.
    """
    if recipe.place == "learned" or recipe.family == "modernbert":
        return {}
    rows = np.zeros((context + recipe.offset, recipe.width))
    if recipe.place == "sinusoidal":
        rows[recipe.offset :] = places.sinusoids(context, recipe.width, INIT * 2**0.5)
    fixed = {position_name(recipe): torch.tensor(rows, dtype=torch.float32)}
    if recipe.family == "roberta":
        types = "roberta.embeddings.token_type_embeddings.weight"
        fixed[types] = torch.zeros(1, recipe.width)
    return fixed


# ---- parts that the models share


def attention(q, k, v, heads, causal, place):
    """softmax(q kᵀ / √d) v per head, [B T D]; `place` turns q and k, or adds to the scores.

    Of three terms (He et al. 2021) the sum is divided by √(3 d). Plain products train faster on a
    CPU than the fused call.
    """
    B, T, D = q.shape
    q, k, v = (by_heads(x, heads) for x in (q, k, v))
    if place.turn is not None:
        q, k = places.turned(q, place.turn), places.turned(k, place.turn)
    if place.row is None:
        scores = q @ k.transpose(-1, -2) * (D // heads) ** -0.5
    else:
        scores = q @ k.transpose(-1, -2) + places.by_distance(q, place.key, place.row)
        of_keys = places.by_distance(k, place.query, place.row.T)
        scores = (scores + of_keys.transpose(-1, -2)) * (3 * D // heads) ** -0.5
    if place.bias is not None:
        scores = scores + place.bias
    if causal:
        scores = scores + torch.full((T, T), -torch.inf, dtype=scores.dtype).triu(1)
    return (torch.softmax(scores, -1, dtype=scores.dtype) @ v).transpose(1, 2).reshape(B, T, D)


def by_heads(x, heads):
    """[... T D] -> [... H T d]."""
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def place_of(recipe, w, T):
    """How the places of T tokens enter attention, the same in every layer."""
    d = recipe.width // recipe.heads
    return places.place_of(recipe.place, T, recipe.heads, d, w.get(BUCKETS))


def disentangled_place(recipe, w, T, layer):
    """The same in DeBERTa: each layer makes queries and keys of the rows of its distances.

    In v2 by the matrices that read the stream.
    """
    rows, names = w[DISTANCES], ("pos_q_proj", "pos_proj")
    row = places.distance_row(T)
    if recipe.place == "disentangled-buckets":
        rows, names = norm(w, DISTANCES_NORM, rows, recipe.eps), ("query", "key")
        row = places.bucket_row(T)
    query, key = (
        by_heads(linear(w, f"{layer}.attention.self.{name}", rows), recipe.heads) for name in names
    )
    return places.Place(query=query, key=key, row=row)


def norm(w, name, x, eps):
    """LayerNorm by the weights of that name; ModernBERT's have no bias."""
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w.get(f"{name}.bias"), eps)


def linear(w, name, x):
    """x Wᵀ + b, or x W + b where the file has [in out] (GPT-2)."""
    W = w[f"{name}.weight"]
    return F.linear(x, W.T if name.startswith("transformer.") else W, w.get(f"{name}.bias"))


def logits_bert(recipe, w, ids, types, places_asked, layers):
    """Logits [N V] of BERT and RoBERTa at N flat places of ids [B T], through those layers."""
    embeddings, eps = f"{recipe.family}.embeddings", recipe.eps
    W_E = w[f"{embeddings}.word_embeddings.weight"]
    W_pos = w[f"{embeddings}.position_embeddings.weight"]
    W_type = w[f"{embeddings}.token_type_embeddings.weight"]
    x = F.embedding(ids, W_E)
    x = x + W_pos[recipe.offset : recipe.offset + ids.shape[1]]
    x = norm(w, f"{embeddings}.LayerNorm", x + F.embedding(types, W_type), eps)
    place = place_of(recipe, w, ids.shape[1])
    for i in layers:
        layer = f"{recipe.family}.encoder.layer.{i}"
        if recipe.place in places.DISENTANGLED:
            place = disentangled_place(recipe, w, ids.shape[1], layer)
        q, k, v = (
            linear(w, f"{layer}.attention.self.{part}", x) for part in ("query", "key", "value")
        )
        z = attention(q, k, v, recipe.heads, causal=False, place=place)
        z = linear(w, f"{layer}.attention.output.dense", z)
        x = norm(w, f"{layer}.attention.output.LayerNorm", x + z, eps)
        post = F.gelu(linear(w, f"{layer}.intermediate.dense", x))
        x = norm(w, f"{layer}.output.LayerNorm", x + linear(w, f"{layer}.output.dense", post), eps)
    dense, ln, bias = head_names(recipe.family)
    x = norm(w, ln, F.gelu(linear(w, dense, x.flatten(0, 1)[places_asked])), eps)
    return F.linear(x, W_E, w[bias])


def logits_gpt2(recipe, w, ids, _, places_asked, layers):
    """Logits [N V] of GPT-2 at N flat places of ids [B T], through those layers."""
    W_E, eps = w["transformer.wte.weight"], recipe.eps
    x = F.embedding(ids, W_E) + w["transformer.wpe.weight"][: ids.shape[1]]
    if f"{EMBED_NORM}.weight" in w:
        x = norm(w, EMBED_NORM, x, eps)
    place = place_of(recipe, w, ids.shape[1])
    for i in layers:
        layer = f"transformer.h.{i}"
        qkv = linear(w, f"{layer}.attn.c_attn", norm(w, f"{layer}.ln_1", x, eps))
        q, k, v = qkv.split(recipe.width, -1)
        z = attention(q, k, v, recipe.heads, causal=True, place=place)
        x = x + linear(w, f"{layer}.attn.c_proj", z)
        pre = linear(w, f"{layer}.mlp.c_fc", norm(w, f"{layer}.ln_2", x, eps))
        x = x + linear(w, f"{layer}.mlp.c_proj", F.gelu(pre, approximate="tanh"))
    x = norm(w, "transformer.ln_f", x, eps).flatten(0, 1)[places_asked]
    return F.linear(x, W_E)


def logits_modernbert(recipe, w, ids, _, places_asked, layers):
    """Logits [N V] of ModernBERT at N flat places of ids [B T], through those layers."""
    W_E, eps = w["model.embeddings.tok_embeddings.weight"], recipe.eps
    x = norm(w, "model.embeddings.norm", F.embedding(ids, W_E), eps)
    place = place_of(recipe, w, ids.shape[1])
    for i in layers:
        layer = f"model.layers.{i}"
        x_in = norm(w, f"{layer}.attn_norm", x, eps) if i else x
        q, k, v = F.linear(x_in, w[f"{layer}.attn.Wqkv.weight"]).chunk(3, -1)
        z = attention(q, k, v, recipe.heads, causal=False, place=place)
        x = x + F.linear(z, w[f"{layer}.attn.Wo.weight"])
        x_in = norm(w, f"{layer}.mlp_norm", x, eps)
        pre, gate = F.linear(x_in, w[f"{layer}.mlp.Wi.weight"]).chunk(2, -1)
        x = x + F.linear(F.gelu(pre) * gate, w[f"{layer}.mlp.Wo.weight"])
    x = norm(w, "model.final_norm", x, eps).flatten(0, 1)[places_asked]
    x = norm(w, "head.norm", F.gelu(F.linear(x, w["head.dense.weight"])), eps)
    return F.linear(x, W_E, w["decoder.bias"])


LOGITS = {
    "gpt2": logits_gpt2,
    "bert": logits_bert,
    "roberta": logits_bert,
    "modernbert": logits_modernbert,
}


def loss_of(recipe, w, inputs, types, places_asked, targets, layers=None):
    """Mean cross-entropy in nats per predicted token; through all layers unless told which."""
    layers = range(recipe.layers) if layers is None else layers
    logits = LOGITS[recipe.family](recipe, w, inputs, types, places_asked, layers)
    return F.cross_entropy(logits.float(), targets)

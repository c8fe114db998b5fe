"""Makes tiny-bart, a small encoder-decoder that reads dates: data, a tokenizer, training, a file.

    python -m minitx.weights.training.train_dates --out FOLDER

The data are drawn while it trains (dates.py); the loop may be stopped at any time and continues
from its state in FOLDER when called again. Read downward: the recipe, the tokenizer, batches, the
model as a function of named weights (the names are those of the file), training, export.
"""

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, processors

from minitx.weights import dates
from minitx.weights.training import train
from minitx.weights.training.train import F, torch  # it says what to do where PyTorch is missing

SPECIALS = "<s>", "<pad>", "</s>", "<unk>"
START, PAD, END = 0, 1, 2
OFFSET, EPS = 2, 1e-5


@dataclass(frozen=True)
class Recipe:
    """Sizes of the model and of its training; a step reads `texts` dates."""

    encoder_layers: int = 2
    decoder_layers: int = 2
    heads: int = 4
    width: int = 64
    inner: int = 192  # width inside an MLP
    context: int = 64  # the longest text and ISO date, in pieces
    texts: int = 64
    steps: int = 12000
    rate: float = 2e-3
    warm_up: int = 500
    decline: float = 0.5  # share of the steps at the end in which the rate falls to 0


# ---- tokenizer


def build_tokenizer():
    """A piece for every character, behind BART's special ones: a BPE without merges."""
    vocabulary = {piece: i for i, piece in enumerate((*SPECIALS, *dates.ALPHABET))}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.add_special_tokens(list(SPECIALS))
    tokenizer.decoder = decoders.Fuse()
    ends = ("</s>", END), ("<s>", START)
    tokenizer.post_processor = processors.RobertaProcessing(
        *ends, trim_offsets=False, add_prefix_space=False
    )
    return tokenizer


# ---- batches


def padded(rows):
    """Rows of ids as one tensor [B T], short ones filled with PAD."""
    length = max(map(len, rows))
    return torch.tensor([row + [PAD] * (length - len(row)) for row in rows])


def make_batch(tokenizer, written):
    """Tensors source [B S], inputs [B T], targets [B T] of dates; the inputs are </s> + targets."""
    source, target = (
        tokenizer.encode_batch([getattr(record, field) for record in written])
        for field in ("text", "iso")
    )
    targets = padded([row.ids for row in target])
    inputs = F.pad(targets[:, :-1], (1, 0), value=END)
    return padded([row.ids for row in source]), inputs, targets


# ---- the model


def shapes(recipe):
    """{name: shape} of all weights as in the file; matrices are [out in]."""
    D, M = recipe.width, recipe.inner
    attention = {f"{part}_proj": (D, D) for part in ("q", "k", "v", "out")}
    mlp = {"fc1": (M, D), "fc2": (D, M), "final_layer_norm": (D,)}
    own = {f"self_attn.{name}": shape for name, shape in attention.items()}
    cross = {f"encoder_attn.{name}": shape for name, shape in attention.items()}
    layer = own | {"self_attn_layer_norm": (D,)} | mlp
    sides = {"encoder": (recipe.encoder_layers, layer)}
    sides["decoder"] = recipe.decoder_layers, layer | cross | {"encoder_attn_layer_norm": (D,)}
    weights = {"model.shared.weight": (len(SPECIALS) + len(dates.ALPHABET), D)}
    for side, (n_layers, layer) in sides.items():
        weights[f"model.{side}.embed_positions.weight"] = (recipe.context + OFFSET, D)
        modules = train.in_every_layer(f"model.{side}.layers", layer, n_layers)
        modules[f"model.{side}.layernorm_embedding"] = (D,)
        weights |= {f"{name}.weight": shape for name, shape in modules.items()}
        weights |= {f"{name}.bias": shape[:1] for name, shape in modules.items()}
    return weights


def initial(recipe, rng):
    """Fresh weights: matrices normal with deviation train.INIT, biases 0, norms 1."""
    weights = {}
    for name, shape in shapes(recipe).items():
        if len(shape) == 2:
            values = train.INIT * rng.standard_normal(shape)
        else:
            values = np.full(shape, name.endswith("weight"))
        weights[name] = torch.tensor(values, dtype=torch.float32)
    return {name: p.requires_grad_() for name, p in weights.items()}


def attention(w, name, x, memory, hidden, heads):
    """What attention writes, [B T D]: queries from x [B T D], keys and values from memory [B S D].

    hidden: bool, to [B 1 T S], where no query may look.
    """
    split = {"q": x, "k": memory, "v": memory}
    for part, stream in split.items():
        rows = train.linear(w, f"{name}.{part}_proj", stream)
        split[part] = rows.unflatten(-1, (heads, -1)).transpose(1, 2)
    q, k, v = split.values()
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    pattern = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
    return train.linear(w, f"{name}.out_proj", (pattern @ v).transpose(1, 2).flatten(2))


def embed(w, side, ids):
    """Pieces plus positions from row OFFSET on, normed: [B T] -> [B T D]."""
    positions = w[f"{side}.embed_positions.weight"][OFFSET : OFFSET + ids.shape[1]]
    x = F.embedding(ids, w["model.shared.weight"]) + positions
    return train.norm(w, f"{side}.layernorm_embedding", x, EPS)


def mlp(w, layer, x):
    """x + its MLP, normed."""
    write = train.linear(w, f"{layer}.fc2", F.gelu(train.linear(w, f"{layer}.fc1", x)))
    return train.norm(w, f"{layer}.final_layer_norm", x + write, EPS)


def logits(recipe, w, source, inputs):
    """Logits [B T V] of the next piece of the target, from source [B S] and inputs [B T]."""
    padding = (source == PAD)[:, None, None, :]
    memory = embed(w, "model.encoder", source)
    for i in range(recipe.encoder_layers):
        layer = f"model.encoder.layers.{i}"
        write = attention(w, f"{layer}.self_attn", memory, memory, padding, recipe.heads)
        memory = train.norm(w, f"{layer}.self_attn_layer_norm", memory + write, EPS)
        memory = mlp(w, layer, memory)
    x = embed(w, "model.decoder", inputs)
    T = inputs.shape[1]
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    for i in range(recipe.decoder_layers):
        layer = f"model.decoder.layers.{i}"
        write = attention(w, f"{layer}.self_attn", x, x, future, recipe.heads)
        x = train.norm(w, f"{layer}.self_attn_layer_norm", x + write, EPS)
        write = attention(w, f"{layer}.encoder_attn", x, memory, padding, recipe.heads)
        x = train.norm(w, f"{layer}.encoder_attn_layer_norm", x + write, EPS)
        x = mlp(w, layer, x)
    return x @ w["model.shared.weight"].T


# ---- training


def rate_at(recipe, step):
    """The rate of a step: up from 0 in the warm-up, constant, then in a line down to 0."""
    left = (recipe.steps - step) / (recipe.decline * recipe.steps)
    return recipe.rate * min(1, (step + 1) / recipe.warm_up, left)


def update(recipe, w, optimizer, batch, rate):
    """One AdamW step; returns the loss, in nats per piece of the target."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    source, inputs, targets = batch
    y = logits(recipe, w, source, inputs)
    loss = F.cross_entropy(y.flatten(0, 1), targets.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(w.values(), train.CLIP)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def run(recipe, tokenizer, path, seed):
    """Train from the state at `path`, if any, to the last step; return the weights."""
    if path.exists():
        w, moments, begin = train.load_state(path)
    else:
        w, moments, begin = initial(recipe, np.random.default_rng(seed)), {}, 0
    optimizer = train.optimizer_of(w, moments, begin)
    progress = train.Progress()
    saved = time.time()
    for step in range(begin, recipe.steps):
        rng = np.random.default_rng([seed, step])  # by step: resumed or not, it draws the same
        batch = make_batch(tokenizer, dates.draw(rng, recipe.texts))
        loss = update(recipe, w, optimizer, batch, rate_at(recipe, step))
        n_tokens = batch[0].numel() + batch[1].numel()
        progress.add(loss, n_tokens)
        if (step + 1) % train.REPORT_STEPS == 0:
            left = (recipe.steps - step - 1) * n_tokens
            progress.report(f"step {step + 1}  rate {rate_at(recipe, step):.1e}", left)
        if time.time() > saved + train.SAVE_SECONDS:
            train.save_state(path, w, train.moments_of(w, optimizer), step + 1)
            saved = time.time()
    train.save_state(path, w, train.moments_of(w, optimizer), recipe.steps)
    return w


@torch.no_grad()
def exact(recipe, w, tokenizer, written):
    """Share of dates whose every piece is the likeliest one, and so is written exactly."""
    right = []
    for start in range(0, len(written), 500):
        source, inputs, targets = make_batch(tokenizer, written[start : start + 500])
        guess = logits(recipe, w, source, inputs).argmax(-1)
        right += (guess == targets).all(-1).tolist()
    return np.mean(right)


# ---- export


def config_of(recipe):
    """config.json in the reference library's words."""
    config = {"model_type": "bart", "architectures": ["BartForConditionalGeneration"]}
    config |= {"dtype": "float16", "d_model": recipe.width, "init_std": train.INIT}
    config |= {"vocab_size": len(SPECIALS) + len(dates.ALPHABET)}
    config |= {"max_position_embeddings": recipe.context, "activation_function": "gelu"}
    config |= {"encoder_layers": recipe.encoder_layers, "decoder_layers": recipe.decoder_layers}
    for side in ("encoder", "decoder"):
        config |= {f"{side}_attention_heads": recipe.heads, f"{side}_ffn_dim": recipe.inner}
    config |= {"is_encoder_decoder": True, "scale_embedding": False, "tie_word_embeddings": True}
    config |= {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    return config | TOKENS


TOKENS = {
    "bos_token_id": START,
    "pad_token_id": PAD,
    "eos_token_id": END,
    "decoder_start_token_id": END,
    "forced_bos_token_id": None,
    "forced_eos_token_id": None,
}
TOKENIZER = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "clean_up_tokenization_spaces": False,
    "model_input_names": ["input_ids", "attention_mask"],
}


def export(recipe, w, out):
    """Write the settings and, in float16, model.safetensors; tokenizer.json is already there."""
    train.write_json(out / "config.json", config_of(recipe))
    longest = {"max_length": recipe.context}
    train.write_json(out / "generation_config.json", TOKENS | longest)
    length = {"model_max_length": recipe.context}
    train.write_json(out / "tokenizer_config.json", TOKENIZER | length)
    arrays = {name: p.detach().numpy().astype(np.float16) for name, p in w.items()}
    arrays["final_logits_bias"] = np.zeros((1, len(arrays["model.shared.weight"])), np.float16)
    train.write(
        out / "model.safetensors", lambda part: save_file(arrays, part, metadata={"format": "pt"})
    )


def main():
    """Train, or go on training, and write the checkpoint to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--seed", type=int, default=0)
    for name, kind in Recipe.__annotations__.items():
        option, default = "--" + name.replace("_", "-"), getattr(Recipe, name)
        parser.add_argument(option, type=kind, default=default, help=f"{default} if not given")
    given = vars(parser.parse_args())
    out, seed = given.pop("out"), given.pop("seed")
    recipe = replace(Recipe(), **given)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    train.write(out / "tokenizer.json", lambda part: tokenizer.save(str(part)))
    w = run(recipe, tokenizer, out / "state.safetensors", seed)
    export(recipe, w, out)
    rng = np.random.default_rng(seed)
    for forms, which in ((dates.SEEN, "trained"), (dates.UNSEEN, "unseen")):
        written = dates.draw(rng, 2000, forms, held_out=True)
        print(f"held-out dates, {which} forms: {exact(recipe, w, tokenizer, written):.2%} exact")


if __name__ == "__main__":
    main()

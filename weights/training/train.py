"""Makes the bundled checkpoints: a tokenizer, a model trained in growing contexts, a float16 file.

    python weights/training/train.py tiny-roberta --text FOLDER --out FOLDER

Read downward: the recipes; text and tokenizers; batches; one training loop, which may be stopped at
any time and continues from there when called again; the export. The models are in models.py. Needs
torch, an optional extra; one CPU core is enough.
"""

import argparse
import json
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from minitx.weights.training import models as tiny
from minitx.weights.training.models import INIT, VOCAB, loss_of, position_name
from minitx.weights.training.torches import F, torch  # noqa: F401 (train_dates has F from here)

SAMPLE = Path(__file__).parents[2] / "analysis" / "texts" / "sample.txt"
FRESH = 0.02  # deviation of position rows that are added later
WARM_UP, BETAS, EPSILON, DECAY, CLIP = 500, (0.9, 0.98), 1e-6, 0.1, 1.0
MASKED = 0.2  # share of the tokens that a masked language model has to predict
# share of BERT's inputs that are two segments, so that its second type is learned
PAIRS = 0.125
SAVE_SECONDS, REPORT_STEPS = 60, 200


@dataclass(frozen=True)
class Recipe:
    """The settings in which the checkpoints differ.

    A stage is (context, inputs, steps, first rate, last rate). `depths` and `writers` keep places
    in deeper layers: each stage's number of layers, where they are not all there from the start (a
    new layer begins as a copy of an old one), and the size at which matrices that write to the
    stream begin.
    """

    family: str
    specials: tuple
    eps: float
    offset: int  # the row of the position table that the first token reads
    stages: tuple
    layers: int = 4
    width: int = 128
    heads: int = 4
    place: str = "learned"  # how a place enters: one of places.MECHANISMS
    depths: tuple = ()
    writers: float = 1.0
    products: str = "bfloat16"  # precision of the products: or float32, faster on some CPUs


# Short inputs first: at context 32 the first layer learned to look at neighbours within 5 million
# tokens, at 128 not within 10 million. Heads that look at neighbours then pull new position rows
# into line.
RECIPES = {
    "tiny-roberta": Recipe(
        "roberta",
        ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
        1e-5,
        2,
        (
            (32, 128, 4000, 2e-3, 2e-3),
            (64, 64, 4000, 2e-3, 2e-3),
            (128, 32, 4000, 2e-3, 2e-3),
            (256, 32, 2000, 2e-3, 2e-3),
            (256, 32, 1000, 2e-3, 1.5e-3),
            (256, 32, 1200, 1.5e-3, 3.75e-4),
            (256, 32, 800, 3.75e-4, 2.386e-4),
            (256, 32, 500, 2.386e-4, 0.0),
        ),
    ),
    "tiny-bert": Recipe(
        "bert",
        ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        1e-12,
        0,
        (
            (32, 128, 4000, 2e-3, 2e-3),
            (64, 64, 2000, 2e-3, 2e-3),
            (128, 32, 3000, 2e-3, 2e-3),
            (256, 32, 500, 2e-3, 2e-3),
            (256, 32, 1200, 2e-3, 4e-4),
            (256, 32, 800, 4e-4, 2.4e-4),
            (256, 32, 400, 2.4e-4, 0.0),
        ),
    ),
    "tiny-gpt2": Recipe(
        "gpt2",
        ("<|endoftext|>",),
        1e-5,
        0,
        (
            (64, 64, 1500, 2e-3, 2e-3),
            (128, 32, 1500, 2e-3, 2e-3),
            (256, 32, 1000, 2e-3, 1.2e-3),
            (256, 32, 900, 1.2e-3, 0.0),
        ),
    ),
}


# ---- text and tokenizers


def read_books(folder, held_out):
    """The books of a folder, without any paragraph that also occurs in the held-out text."""
    unseen = set(held_out.read_text(encoding="utf-8").splitlines())
    paths = sorted(Path(folder).glob("*.txt"))
    if not paths:
        raise SystemExit(f"no .txt file in {folder}; wanted one book or more, one paragraph a line")
    books = [path.read_text(encoding="utf-8").splitlines() for path in paths]
    books = [[line for line in book if line not in unseen] for book in books]
    return ["\n".join(book) + "\n" for book in books if book]


def build_tokenizer(recipe, books):
    """VOCAB pieces learned from the books: WordPiece for BERT, byte-level BPE for the others."""
    specials = [AddedToken(name, special=True, lstrip=name == "<mask>") for name in recipe.specials]
    if recipe.family == "bert":
        tokenizer, trainer = wordpiece(specials)
    else:
        tokenizer, trainer = byte_level_bpe(specials)
    lines = (line for book in books for line in book.splitlines(keepends=True))
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = post_processor(recipe.family)
    return tokenizer


def wordpiece(specials):
    """An empty WordPiece tokenizer, lower case as BERT's, and its trainer."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCAB, special_tokens=specials, limit_alphabet=80
    )
    return tokenizer, trainer


def byte_level_bpe(specials):
    """An empty byte-level BPE tokenizer and its trainer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    return tokenizer, trainer


def post_processor(family):
    """What puts the special tokens around a text."""
    if family == "gpt2":
        return processors.ByteLevel(trim_offsets=False)
    if family == "bert":
        return processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)


def prepare(recipe, text, held_out, out):
    """The tokenizer, and all books as one stream of ids; computed once, then loaded from `out`.

    GPT-2's stream has an <|endoftext|> before each book.
    """
    vocabulary, stream = out / "tokenizer.json", out / "stream.safetensors"
    if not stream.exists():
        books = read_books(text, held_out)
        tokenizer = build_tokenizer(recipe, books)
        first = [0] if recipe.family == "gpt2" else []
        ids = [first + tokenizer.encode(book, add_special_tokens=False).ids for book in books]
        arrays = {"stream": np.concatenate(ids).astype(np.uint16)}
        write(vocabulary, lambda part: tokenizer.save(str(part)))
        write(stream, lambda part: save_file(arrays, part))
    with safe_open(stream, framework="np") as file:
        return Tokenizer.from_file(str(vocabulary)), file.get_tensor("stream")


def write(path, save):
    """Save under a temporary name, then rename: a file is whole or not there."""
    part = path.with_name(path.name + ".tmp")
    save(part)
    os.replace(part, path)


# ---- batches


def body_length(recipe, context):
    """Tokens of text in one input.

    GPT-2 needs one more, to predict; the others add two special ones.
    """
    return context + 1 if recipe.family == "gpt2" else context - 2


def windows(stream, rng, n, length):
    """[n length] ids, each row from anywhere in the stream."""
    starts = rng.integers(0, len(stream) - length + 1, n)
    return stream[starts[:, None] + np.arange(length)].astype(np.int64)


def framed(recipe, body, rng, pairs):
    """The body between special tokens: ids and token types [B T].

    A share `pairs` of BERT's inputs are cut in two by a separator.
    """
    start, end = (2, 3) if recipe.family == "bert" else (0, 2)
    ids = np.pad(body, ((0, 0), (1, 1)))
    ids[:, 0], ids[:, -1] = start, end
    types = np.zeros_like(ids)
    if recipe.family == "bert":
        rows = np.flatnonzero(rng.random(len(ids)) < pairs)
        cuts = rng.integers(2, ids.shape[1] - 2, len(rows))
        ids[rows, cuts] = end
        types[rows] = np.arange(ids.shape[1]) > cuts[:, None]
    return ids, types


def masked(recipe, ids, rng):
    """Inputs [B T], and which of their tokens are to be predicted [B T] bool.

    Of these tokens 80 % are masked, 10 % replaced by random ones, and 10 % left as they were.
    """
    n_special = len(recipe.specials)
    predicted = (rng.random(ids.shape) < MASKED) & (ids >= n_special)
    fate = rng.random(ids.shape)
    inputs = np.where(predicted & (fate < 0.8), n_special - 1, ids)
    random = rng.integers(n_special, VOCAB, ids.shape)
    return np.where(predicted & (fate >= 0.9), random, inputs), predicted


def make_batch(recipe, body, rng, pairs=PAIRS):
    """Tensors: inputs [B T], types [B T], flat places to predict at [N], targets [N]."""
    if recipe.family == "gpt2":
        inputs, types, targets = body[:, :-1].copy(), np.zeros(0), body[:, 1:].flatten()
        places = np.arange(len(targets))
    else:
        ids, types = framed(recipe, body, rng, pairs)
        inputs, predicted = masked(recipe, ids, rng)
        places, targets = np.flatnonzero(predicted), ids[predicted]
    return [torch.from_numpy(array) for array in (inputs, types, places, targets)]


# ---- training


def stage_at(recipe, step, scale):
    """The context, inputs, rate, layers and tokens left at a step; None after the last step.

    Rates are linear in a stage. scale: a factor on every stage's steps.
    """
    current = None
    begin, left = 0, 0
    depths = recipe.depths or [recipe.layers] * len(recipe.stages)
    for (context, n, steps, first, last), depth in zip(recipe.stages, depths):
        end = begin + max(1, round(steps * scale))
        if begin <= step < end:
            rate = first + (last - first) * (step - begin) / (end - begin)
            current = context, n, rate * min(1, (step + 1) / WARM_UP), depth
        left += max(0, end - max(begin, step)) * context * n
        begin = end
    return (*current, left) if current else None


def optimizer_of(w, moments, step):
    """AdamW, with weight decay on matrices only, continued from its two moments."""
    groups = []
    for n_axes, decay in ((1, 0.0), (2, DECAY)):
        params = [p for p in w.values() if p.ndim == n_axes and p.requires_grad]
        groups.append({"params": params, "weight_decay": decay})
    optimizer = torch.optim.AdamW(groups, betas=BETAS, eps=EPSILON, fused=True)
    for name, (first, second) in moments.items():
        optimizer.state[w[name]] = {
            "step": torch.tensor(float(step)),
            "exp_avg": first,
            "exp_avg_sq": second,
        }
    return optimizer


def moments_of(w, optimizer):
    """{name: (first, second moment)} as the optimizer has them."""
    moments = {}
    for name, p in w.items():
        if p in optimizer.state:
            state = optimizer.state[p]
            moments[name] = state["exp_avg"], state["exp_avg_sq"]
    return moments


def grow(recipe, w, moments, context, rng):
    """Lengthen the position table by fresh rows, and its moments by zeros."""
    name = position_name(recipe)
    if recipe.place != "learned":
        w |= tiny.fixed_rows(recipe, context)
        return
    n_rows = context + recipe.offset - len(w[name])
    rows = torch.tensor(FRESH * rng.standard_normal((n_rows, recipe.width)), dtype=torch.float32)
    w[name] = torch.cat([w[name].detach(), rows]).requires_grad_()
    moments[name] = tuple(torch.cat([moment, torch.zeros_like(rows)]) for moment in moments[name])


def deepen(recipe, w, moments, depth):
    """Add layers up to that number, copies of those that are there in turn; moments too.

    All of them then write less, so that they write together about what the old ones wrote. A norm
    that a copied layer 0 had not begins at 1.
    """
    old = n_layers(w)
    for i in range(old, depth):
        for name in [name for name in w if f".{i % old}." in name]:
            new = name.replace(f".{i % old}.", f".{i}.")
            w[new] = w[name].detach().clone().requires_grad_()
            moments[new] = tuple(moment.clone() for moment in moments[name])
    with torch.no_grad():
        for name in w:
            if name.rpartition(".")[0].endswith(tiny.WRITERS):
                w[name] *= old / depth
    for name, shape in tiny.shapes(replace(recipe, layers=depth), recipe.stages[0][0]).items():
        if name not in w:
            w[name] = torch.ones(shape).requires_grad_()


def n_layers(w):
    """The number of layers among named weights."""
    return len({part for name in w for part in name.split(".") if part.isdigit()})


def save_state(path, w, moments, step):
    """Weights, moments and step in one safetensors file."""
    arrays = {name: p.detach().numpy() for name, p in w.items()}
    for name, (first, second) in moments.items():
        arrays |= {f"first/{name}": first.numpy(), f"second/{name}": second.numpy()}
    write(path, lambda part: save_file(arrays, part, metadata={"step": str(step)}))


def load_state(path):
    """The weights, moments and step that `save_state` wrote."""
    with safe_open(path, framework="pt") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}
        step = int(file.metadata()["step"])
    w = {name: array.requires_grad_() for name, array in arrays.items() if "/" not in name}
    learned = [name for name in w if f"first/{name}" in arrays]  # not a layer that was left out
    moments = {name: (arrays[f"first/{name}"], arrays[f"second/{name}"]) for name in learned}
    return w, moments, step


def state_at(path, recipe, seed):
    """The weights, moments and step at `path`, if any, else those of the beginning."""
    if not path.exists():
        context, layers = recipe.stages[0][0], (*recipe.depths, recipe.layers)[0]
        return tiny.initial(recipe, context, layers, np.random.default_rng(seed)), {}, 0
    w, moments, step = load_state(path)
    for name in tiny.fixed_rows(recipe, 1):
        w[name].requires_grad_(False)
    return w, moments, step


def update(recipe, w, optimizer, batch, rate, layers):
    """One AdamW step through those layers, its weights in float32; returns the loss."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    with torch.autocast("cpu", torch.bfloat16, enabled=recipe.products == "bfloat16"):
        loss = loss_of(recipe, w, *batch, layers)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(w.values(), CLIP)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def train(recipe, stream, path, seed, scale):
    """Train from the state at `path`, if any, to the end of the last stage; return the weights."""
    w, moments, step = state_at(path, recipe, seed)
    optimizer = optimizer_of(w, moments, step)
    progress = Progress()
    saved = time.time()
    stage = stage_at(recipe, step, scale)
    while stage:
        context, n, rate, depth, left = stage
        rng = np.random.default_rng([seed, step])  # by step: resumed or not, it draws the same
        if tiny.reach(recipe, w) < context or n_layers(w) < depth:
            moments = moments_of(w, optimizer)
            grow(recipe, w, moments, context, rng)
            deepen(recipe, w, moments, depth)
            optimizer = optimizer_of(w, moments, step)
        body = windows(stream, rng, n, body_length(recipe, context))
        batch = make_batch(recipe, body, rng)
        loss = update(recipe, w, optimizer, batch, rate, range(depth))
        progress.add(loss, n * context)
        step += 1
        if step % REPORT_STEPS == 0:
            progress.report(f"step {step}  context {context}  rate {rate:.1e}", left)
        if time.time() > saved + SAVE_SECONDS:
            save_state(path, w, moments_of(w, optimizer), step)
            saved = time.time()
        stage = stage_at(recipe, step, scale)
    save_state(path, w, moments_of(w, optimizer), step)
    return w


class Progress:
    """The losses and the speed since the last report."""

    def __init__(self):
        self.restart()

    def restart(self):
        """Forget what was reported."""
        self.losses = []
        self.tokens = 0
        self.since = time.time()

    def add(self, loss, tokens):
        """Count one step."""
        self.losses.append(loss)
        self.tokens += tokens

    def report(self, stage, left):
        """Print a line for this stage, with the time that the tokens left will take."""
        speed = self.tokens / (time.time() - self.since)
        print(
            f"{stage}  loss {np.mean(self.losses):.3f}  "
            f"{speed:,.0f} tokens/s  {left / speed / 60:.0f} min left",
            flush=True,
        )
        self.restart()


@torch.no_grad()
def held_out_loss(recipe, w, tokenizer, text, seed=0):
    """Mean loss in nats, in float32, and the number of tokens predicted.

    The text is cut into consecutive full inputs.
    """
    context = recipe.stages[-1][0]
    length = body_length(recipe, context)
    # GPT-2's windows share one token
    step = context if recipe.family == "gpt2" else context - 2
    ids = np.array(tokenizer.encode(text, add_special_tokens=False).ids)
    starts = np.arange(0, len(ids) - length + 1, step)
    rng = np.random.default_rng(seed)
    total, count = 0.0, 0
    for rows in np.split(starts, range(32, len(starts), 32)):
        body = ids[rows[:, None] + np.arange(length)]
        batch = make_batch(recipe, body, rng, pairs=0)
        total += loss_of(recipe, w, *batch).item() * len(batch[-1])
        count += len(batch[-1])
    return total / count, count


# ---- export


GPT2_CONFIG = {
    "architectures": ["GPT2LMHeadModel"],
    "n_inner": None,
    "activation_function": "gelu_new",
    "attn_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "resid_pdrop": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
ENCODER_CONFIG = {
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
BERT_CONFIG = {"architectures": ["BertForMaskedLM"], "type_vocab_size": 2, "pad_token_id": 0}
ROBERTA_CONFIG = {
    "architectures": ["RobertaForMaskedLM"],
    "type_vocab_size": 1,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
TOKENIZERS = {"gpt2": "GPT2Tokenizer", "roberta": "RobertaTokenizer", "bert": "BertTokenizer"}


def config_of(recipe, context):
    """config.json in the reference library's words."""
    config = {"model_type": recipe.family, "dtype": "float16", "vocab_size": VOCAB}
    config |= {"initializer_range": INIT, "tie_word_embeddings": True}
    if recipe.family == "gpt2":
        sizes = {"n_positions": context, "layer_norm_epsilon": recipe.eps}
        sizes |= {"n_layer": recipe.layers, "n_head": recipe.heads, "n_embd": recipe.width}
        return config | GPT2_CONFIG | sizes
    sizes = {"layer_norm_eps": recipe.eps, "max_position_embeddings": context + recipe.offset}
    sizes |= {"num_hidden_layers": recipe.layers, "num_attention_heads": recipe.heads}
    sizes |= {"hidden_size": recipe.width, "intermediate_size": 4 * recipe.width}
    own = ROBERTA_CONFIG if recipe.family == "roberta" else BERT_CONFIG
    return config | ENCODER_CONFIG | own | sizes


def export(recipe, w, out):
    """Write config.json, tokenizer_config.json and, in float16, model.safetensors."""
    context = recipe.stages[-1][0]
    tokens = {"tokenizer_class": TOKENIZERS[recipe.family], "model_max_length": context}
    write_json(out / "config.json", config_of(recipe, context))
    write_json(out / "tokenizer_config.json", tokens)
    save_half(out / "model.safetensors", {name: p.detach() for name, p in w.items()})


def save_half(path, tensors):
    """Write tensors in float16, as the reference library reads them."""
    arrays = {name: p.numpy().astype(np.float16) for name, p in tensors.items()}
    write(path, lambda part: save_file(arrays, part, metadata={"format": "pt"}))


def write_json(path, content):
    """Write a dictionary, its keys in alphabetical order."""
    text = json.dumps(content, indent=2, sort_keys=True) + "\n"
    write(path, lambda part: part.write_text(text))


# Settings of a recipe that an option changes, for a trial.
TRIED = {
    "layers": "number of layers",
    "width": "width of the stream",
    "heads": "heads of a layer",
    "writers": "size that matrices which write to the stream begin at (1: as all others)",
}


def main():
    """Train, or go on training, one checkpoint and write it to --out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--text", required=True, help="folder of .txt books, one paragraph a line")
    parser.add_argument("--out", required=True, type=Path, help="folder for checkpoint and state")
    parser.add_argument("--held-out", type=Path, default=SAMPLE, help="text never trained on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--steps-scale", type=float, default=1.0, help="factor on every stage's steps"
    )
    for name, what in TRIED.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=Recipe.__annotations__[name], help=what)
    parser.add_argument("--products", choices=("bfloat16", "float32"), help="their precision")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    changed = {name: getattr(given, name) for name in (*TRIED, "products")}
    changed = {name: value for name, value in changed.items() if value is not None}
    recipe = replace(RECIPES[given.name], **changed)
    tokenizer, stream = prepare(recipe, given.text, given.held_out, given.out)
    print(f"{given.name}: {len(stream):,} tokens of text", flush=True)
    w = train(recipe, stream, given.out / "state.safetensors", given.seed, given.steps_scale)
    export(recipe, w, given.out)
    loss, n = held_out_loss(recipe, w, tokenizer, given.held_out.read_text(encoding="utf-8"))
    print(f"held-out loss {loss:.4f} nats over {n:,} predicted tokens; written to {given.out}")


if __name__ == "__main__":
    main()

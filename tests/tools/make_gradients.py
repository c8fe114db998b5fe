"""Makes tests/golden/gradients: what PyTorch's automatic derivatives say of the golden models.

    python tests/tools/make_gradients.py [VARIANT ...]

Two ways, which must agree on every array to 1e-12 (BLOOM: 1e-9): the reference library's model with
a loss taken of its logits; and minitx's own forward pass run on torch tensors, whose kernels are
replaced by torch's. The second has every point as well, so its gradients are what is stored:
`W_Q.0` for an array of layer 0, `point.resid_pre.0` for a point, with the inputs, targets and the
loss, float64. Needs torch and the reference library, as make_golden.py.
"""

import contextlib
import functools
import sys
import tempfile
from pathlib import Path
from unittest import mock

import make_golden
import make_golden_decoders
import make_golden_pairs
import numpy as np
import torch
from safetensors.numpy import save_file

import minitx
from minitx import distances as core_distances
from minitx import model as core
from minitx import positions as core_positions
from minitx import side_by_side
from minitx.heads import is_pooled
from minitx.learning.parameters import is_tied_output, owners, parameters, with_arrays

GOLDEN = Path(__file__).parents[1] / "golden"
OUT = GOLDEN / "gradients"
NO_LOSS = "bare", "choice", "question", "order"
LONGER = {"llama-dynamic": 11, "qwen2-longrope": 15}  # tokens: other angles than in training
VARIANTS = """
    bert-masked bert-sequence roberta-masked distilbert-token electra-token mpnet-masked
    gpt2-causal gpt2-inverse-layer gpt2-sequence bart-causal bart-scaled marian-shared
    t5-relu t5-gated llama-grouped llama-wide llama-sequence mistral-window qwen2-biases
    qwen3-norms gpt_neox-parallel gpt_neox-sequential bloom-residual bloom-three
    modernbert-masked modernbert-sequence
""".split()
VARIANTS += LONGER
for kind in ("decoders", "distances", "shared"):
    names = [row[0] for row in make_golden.variants(kind)]
    VARIANTS += [name for name in names if not name.endswith(NO_LOSS)]
LIMIT, BLOOM = 1e-12, 1e-9  # of the largest gradient; BLOOM is 1.5e-10 apart, not explained
F = torch.nn.functional


def linear(x, W, b=None):
    return x @ W if b is None else x @ W + b


def matmul_heads(a, b):
    return a @ b.repeat_interleave(a.shape[1] // b.shape[1], 1)


def mean_and_inverse_std(x, eps):
    variance = x.var(-1, correction=0)
    return x.mean(-1), (variance + eps) ** -0.5


def normalise(x, mean, scale, w, b):
    y = (x - mean[..., None]) * scale[..., None] * w
    return y if b is None else y + b


def inverse_rms(x, eps):
    return ((x * x).mean(-1) + eps) ** -0.5


def scaled(x, scale, w):
    return x * scale[..., None] * w


def classified_token(x, valid, cfg):
    if cfg.mean_pooled:
        share = torch.from_numpy(valid / valid.sum(1, keepdims=True))
        return share[:, None] @ x
    token = valid.shape[1] - 1 - valid[:, ::-1].argmax(1) if cfg.causal else valid.argmax(1)
    return x[np.arange(len(x)), token][:, None]


def as_tensor(function):
    """The function with its array, if it gives one, as a tensor of float64."""

    @functools.wraps(function)
    def wrapped(*given, **named):
        array = function(*given, **named)
        return None if array is None else torch.from_numpy(array).double()

    return wrapped


def places(model, numbers, keys, hook, positions=None, mask=None):
    """As minitx's, but a Place for each layer, and a bias and angles that have gradients."""
    cfg, W_rel = model.config, model.weights.W_rel
    by_distance = 0
    if cfg.alibi:
        by_distance = hook("pos_bias", leaf(core_positions.alibi(cfg, numbers, keys)))
    elif W_rel is not None:
        row = np.arange(len(W_rel))[:, None]
        rows = core_positions.relative_bias(cfg, row, numbers, keys)[:, 0]
        by_distance = hook("pos_bias", W_rel[rows].permute(0, 3, 1, 2))
    apart = None
    if cfg.n_distances:
        apart = distances(cfg, model.weights, numbers, keys, hook)
    return [place(cfg, layer, numbers, keys, by_distance, apart) for layer in range(cfg.n_layers)]


def distances(cfg, w, numbers, keys, hook):
    embed = w.W_dist[None]
    if w.ln_dist_w is not None:
        embed = normalise(embed, *mean_and_inverse_std(embed, cfg.eps), w.ln_dist_w, w.ln_dist_b)
    distance = core_distances.key_distance(cfg, numbers, keys)
    row = torch.from_numpy(core_distances.distance_row(cfg, distance))
    return core_distances.Distances(hook("dist_embed", embed), row)


def by_distance(products, row):
    return products.gather(-1, row[:, None].expand(*products.shape[:2], *row.shape[1:]))


def place(cfg, layer, numbers, keys, by_distance, apart):
    window = cfg.windows[layer] if cfg.windows else None
    hidden = attention_bias(cfg, numbers, keys, None, cfg.causal, window=window)
    bias = by_distance if hidden is None else by_distance + hidden
    rotary = cfg.rotary[layer] if cfg.rotary else None
    if rotary is None:
        return core_positions.Place(None, 1.0, bias, apart)
    frequencies = rotary.for_length(int(numbers.max()) + 1).frequencies
    angle = core_positions.angles(frequencies, numbers, np.float64)
    return core_positions.Place(leaf(angle), rotary.scale, bias)


def turned(x, angle, scale=1.0):
    r = angle.shape[-1]
    cos, sin = scale * torch.cos(angle[:, None]), scale * torch.sin(angle[:, None])
    first, second = x[..., :r], x[..., r : 2 * r]
    parts = first * cos - second * sin, second * cos + first * sin, x[..., 2 * r :]
    return torch.cat(parts, -1)


def leaf(array):
    return torch.from_numpy(np.ascontiguousarray(array)).double().requires_grad_()


attention_bias = as_tensor(core.attention_bias)
ACTIVATIONS = {
    "gelu": F.gelu,
    **dict.fromkeys(
        ("gelu_new", "gelu_pytorch_tanh"), functools.partial(F.gelu, approximate="tanh")
    ),
    **dict.fromkeys(("silu", "swish"), F.silu),
    "relu": F.relu,
    "tanh": torch.tanh,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}
KERNELS = {
    "linear": linear,
    "matmul_heads": matmul_heads,
    "mean_and_inverse_std": mean_and_inverse_std,
    "normalise": normalise,
    "inverse_rms": inverse_rms,
    "scaled": scaled,
    "capped_": lambda x, cap: cap * torch.tanh(x / cap),
    "softmax_": lambda x: torch.softmax(x, -1),
    "classified_token": classified_token,
    "attention_bias": attention_bias,
    "places": places,
    "turned": turned,
    "feature_major": lambda x: x,
    "limited": lambda x, cfg: x.clamp(-cfg.qkv_limit, cfg.qkv_limit) if cfg.qkv_limit else x,
    "checked_scale": lambda name, scale, w: scale,
    "ACTIVATIONS": ACTIVATIONS,
}
DISTANCES = {
    "linear": linear,
    "by_distance": by_distance,
    "heads_by_rows": lambda x, rows: x @ rows.transpose(-1, -2),
}


def inputs(model, rng, T=6):
    """Two texts of T tokens, one padded, and random targets of which some are left out."""
    B, S = 2, 5
    given = {"tokens": words(model, (B, T), rng)}
    given["valid"] = np.arange(T) < np.array([[T], [T - 2]])
    if model.config.causal and is_pooled(model.config.task_head):
        given["valid"][:] = True  # the library finds a text's end by its ids, not by the mask
    if model.encoder is not None:
        given["source"] = words(model.encoder, (B, S), rng)
        given["source_valid"] = np.arange(S) < np.array([[S - 1], [S]])
    elif model.config.n_types > 1:
        given["types"] = rng.integers(0, model.config.n_types, (B, T))
    n_classes = model.weights.W_U.shape[1]
    if is_pooled(model.config.task_head):
        return given, rng.integers(0, n_classes, B)
    targets = rng.integers(0, n_classes, (B, T))
    targets[rng.random((B, T)) < 0.3] = -100
    targets[~given["valid"]] = -100
    return given, targets


def words(model, shape, rng):
    """Ids at random without the padding's, whose row the library keeps from learning."""
    ids = rng.integers(3, model.config.n_vocab - 1, shape)
    return ids + (ids >= model.config.pad_id) * (model.config.pad_id >= 3)


@contextlib.contextmanager
def on_tensors():
    """Inside, minitx's pass computes with the kernels of torch."""
    with (
        mock.patch.multiple(core, **KERNELS),
        mock.patch.multiple(core_distances, **DISTANCES),
        mock.patch.object(side_by_side, "linear", linear),
    ):
        yield


def of_twin(model, given, targets):
    """{name: gradient} of every array and point, and the loss, by minitx's pass on tensors."""
    named, points = parameters(model), {}
    owner = owners(model)
    leaves = {
        key: torch.tensor(named[key], dtype=torch.float64, requires_grad=True)
        for key in dict.fromkeys(owner.values())
    }
    arrays = {
        key: leaves[own].T if is_tied_output(key, own) else leaves[own]
        for key, own in owner.items()
    }
    twin = with_arrays(model, arrays, "")

    def hook(name, x, layer=None):
        x = x.clone()  # where there is no norm, two points are one array
        if x.requires_grad:
            x.retain_grad()
            key = name if layer is None else (name, layer)
            points["point." + as_text(key)] = x
        return x

    with on_tensors():
        rest = {key: x for key, x in given.items() if key != "tokens"}
        x = core.forward(twin, given["tokens"], hook=hook, **rest)
        y = core.logits(twin, x, valid=given["valid"], hook=hook)
    loss = cross_entropy(y, targets)
    loss.backward()
    tensors = {as_text(key): leaf for key, leaf in leaves.items()} | points
    return {key: x.grad.numpy() for key, x in tensors.items() if x.grad is not None}, float(loss)


def cross_entropy(y, targets):
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), torch.from_numpy(targets).reshape(-1))


def as_text(key):
    return key if isinstance(key, str) else f"{key[0]}.{key[1]}"


def of_library(folder, given, targets):
    """The same of every array by the reference library, as the arrays of a model."""
    maker = make_golden_pairs if "source" in given else make_golden
    library = maker.library_model(folder, "float64")
    names = {"tokens": "input_ids", "valid": "attention_mask", "types": "token_type_ids"}
    if "source" in given:
        names = {"tokens": "decoder_input_ids", "valid": "decoder_attention_mask"}
        names |= {"source": "input_ids", "source_valid": "attention_mask"}
    options = {names[key]: torch.from_numpy(x.astype(np.int64)) for key, x in given.items()}
    library.double()  # DeBERTa's biases of queries and values are of float32 in any model
    with make_golden_decoders.in_float64(library):
        y = make_golden.logits_of(library, library(**options))
        loss = cross_entropy(y, targets)
        loss.backward()
    for x in library.parameters():
        x.data = torch.zeros_like(x) if x.grad is None else x.grad
    with tempfile.TemporaryDirectory() as gradients:
        library.save_pretrained(gradients)
        arrays = parameters(minitx.load(gradients, "float64"))
    # a gradient without what loading, which takes it for an array, made of it
    cfg = library.config
    own = {key: (x - added(cfg, key)) / times(cfg, key) for key, x in arrays.items()}
    return own, float(loss)


def times(config, key):
    """By what loading multiplies Granite's arrays that write, twice: the gradient has it, too."""
    writes = not isinstance(key, str) and key[0] in ("W_O", "b_O", "W_out", "b_out")
    return getattr(config, "residual_multiplier", 1.0) ** 2 if writes else 1.0


def added(config, key):
    """What loading adds to the weights of Gemma's norms, and so here to their gradients."""
    name = key if isinstance(key, str) else key[0]
    is_gain = name.startswith("ln_") or name in ("ln1_w", "ln2_w", "attn_out_w", "mlp_out_w")
    return float(is_gain and config.model_type.startswith("gemma"))


def unlearned(model):
    """Arrays that the library holds as constants: sinusoids, the output bias of BART and Marian."""
    names = []
    if model.encoder is not None and model.config.task_head == "causal":
        names += ["b_U"]
    if model.config.sinusoids:
        names += ["W_pos", "enc_W_pos"]
    if model.config.model_type == "olmo":  # the gains that its norms do not have
        names += [key for key in parameters(model) if "ln" in str(key)]
    return names


def make(variant):
    """One file, after both ways agreed."""
    folder = GOLDEN / variant
    model = minitx.load(folder, "float64")
    T = LONGER.get(variant, 6)
    given, targets = inputs(model, np.random.default_rng(len(variant)), T)
    gradients, loss = of_twin(model, given, targets)
    library, library_loss = of_library(folder, given, targets)
    largest = max(abs(x).max() for x in gradients.values())
    differences = {"loss": abs(loss - library_loss)}
    for key, own in owners(model).items():
        if key == own and key not in unlearned(model):
            x = gradients.get(as_text(key), np.zeros(1))
            differences[key] = abs(x - library[key]).max() / largest
    worst = max(differences, key=differences.get)
    print(f"{variant}: farthest apart {worst}, {differences[worst]:.1e}")
    assert differences[worst] < (BLOOM if "bloom" in variant else LIMIT)
    arrays = {f"input.{key}": x for key, x in given.items()}
    arrays |= {"input.targets": targets, "loss": np.array(loss), **gradients}
    arrays = {key: np.ascontiguousarray(x) for key, x in arrays.items()}
    save_file(arrays, OUT / f"{variant}.safetensors")


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    for variant in sys.argv[1:] or VARIANTS:
        make(variant)

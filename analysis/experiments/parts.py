"""Architecturally, is a transformer nothing but attention?

Weights and multiply-adds of each part of a model, counted and not timed: what a pass of T tokens
costs, where attention's own products overtake the MLPs, and what one more token costs with a cache
of keys and values and without one; and what telling positions costs. A multiply-add is counted
where two arrays are multiplied as matrices; norms, activations and softmax take none. Exact counts:
there is no chance in them. In an encoder-decoder both stacks count, and cross-attention, for a
source as long as the text.

T tokens, S those of a source, n lengths, P parts.
"""

import math

import numpy as np

from minitx.heads import is_pooled
from minitx.loading.finite import named_arrays

from ..contract import Asks, Of, options, register
from ..drawing import When, draw, row
from ..machine.language import filled, translated
from ..running.stream import UNSAVED

EMBEDDINGS, PROJECTIONS, MLPS, NORMS, OUTPUT = (
    "embeddings", "Q, K, V, O projections", "MLPs", "norms", "output",
)  # fmt: skip
SCORES, SOFTMAX, MIXING = "Q Kᵀ", "softmax", "A V"
COLORS = {  # the parts, in the order in which a pass meets them
    EMBEDDINGS: draw.SKY,
    PROJECTIONS: draw.BLUE,
    SCORES: draw.VERMILION,
    SOFTMAX: draw.PURPLE,
    MIXING: draw.ORANGE,
    MLPS: draw.GREEN,
    NORMS: draw.GREY,
    OUTPUT: "black",
}
PRODUCTS = (SCORES, MIXING)  # of two activations: no weights take part
PART_OF = {  # arrays of a model by what follows W_ or b_; others than these are of norms
    **dict.fromkeys(("E", "pos", "rel", "dist", "type", "map"), EMBEDDINGS),
    **dict.fromkeys([*"QKVO", "Q_pos", "K_pos"], PROJECTIONS),
    **dict.fromkeys(("gate", "in", "out"), MLPS),
    **dict.fromkeys(("head", "ln_head", "U", "logit_scale"), OUTPUT),
}
PLACES = "telling positions"
WHAT_TELLS = {  # how a place enters, as the words have it
    "learned": "adding the rows of a table to the words",
    "sinusoidal": "adding the rows of a table to the words",
    "rotary": "turning queries and keys",
    "buckets": "adding a bias to the scores",
    "alibi": "adding a bias to the scores",
    "disentangled": "comparing queries and keys with distances",
}
ALONE, HALF = 0.9, 0.5  # of the layers' multiply-adds: attention is all of them, or most


def parts(model, run=UNSAVED, *, tokens: options.Tokens = 0):
    """Weights and multiply-adds by part, against the length of the text.

    tokens: length of the text, any (0: the model's longest input)
    """
    cfg = model.config
    T = tokens or cfg.n_ctx
    by_weights, by_pass = weights_by_part(model), multiply_adds(model, T)
    result = {"T": T, "n_ctx": cfg.n_ctx, "parts": np.array([*COLORS]), "causal": cfg.causal}
    result["has_source"] = model.encoder is not None
    result["weights"] = np.array([by_weights[part] for part in COLORS])
    result["multiply_adds"] = np.array([by_pass[part] for part in COLORS])
    result["total"] = result["weights"].sum()
    w = model.weights
    result["shared"] = by_pass[OUTPUT] > 0 and np.shares_memory(w.W_U, w.W_E)
    result |= _in_layers(by_weights, by_pass) | overtaken(model)
    result["mechanisms"] = " + ".join(cfg.mechanisms)
    result["mask_orders"] = cfg.causal or any(cfg.windows)
    result["place_operations"] = place_operations(model, T)
    result["place_share"] = result["place_operations"] / result["multiply_adds"].sum()
    longest = 4 * max(T, cfg.n_ctx, int(result["overtakes"]))
    lengths = np.unique(np.geomspace(1, longest, 60).round().astype(int))
    by_length = [multiply_adds(model, int(n)) for n in lengths]
    result["lengths"] = lengths
    result["by_length"] = np.array([[costs[part] for part in COLORS] for costs in by_length])
    result["places_by_length"] = np.array([place_operations(model, int(n)) for n in lengths])
    if cfg.causal:
        result |= _steps(model, T, lengths)
    return result


def part_of(name):
    """The part to which an array of this name belongs."""
    if name.startswith(("W_", "b_")):
        return PART_OF[name[2:]]
    return PART_OF.get(name.removesuffix("_w").removesuffix("_b"), NORMS)


def weights_by_part(model):
    """{part: weights, in numbers}, each once: a tied output matrix is the word embedding."""
    sizes, counted = dict.fromkeys(COLORS, 0), set()
    for name, x in named_arrays(model).items():
        place = x.__array_interface__["data"][0]
        if place not in counted:
            counted.add(place)
            sizes[part_of(name.rpartition(".")[-1])] += x.size
    return sizes


def multiply_adds(model, T, past=0, read_out=None, S=None):
    """{part: multiply-adds} of a pass of T tokens behind `past` ones that a cache holds.

    read_out: tokens that go through the output (None: all, or the one that a classifier reads).
    S: tokens of an encoder-decoder's source (None: T), which is read with the first tokens only.
    Every matrix meets every token once, each query every key: hidden keys are multiplied too.
    """
    cfg = model.config
    counts = _of_stack(model, T, past + T)
    if model.encoder is not None:
        S = T if S is None else S
        others = [_of_cross(model, T, S, reads=past == 0)]
        if past == 0:
            others.append(_of_stack(model.encoder, S, S))
        counts = {part: counts[part] + sum(o[part] for o in others) for part in COLORS}
    if cfg.task_head:
        if read_out is None:
            read_out = 1 if is_pooled(cfg.task_head) else T
        matrices = [x for x in (model.weights.W_head, model.weights.W_U) if x is not None]
        counts[OUTPUT] = read_out * sum(x.size for x in matrices)
    return counts


def _of_stack(model, T, n_keys):
    """{part: multiply-adds} of the layers of one stack, without cross-attention."""
    cfg = model.config
    counts = dict.fromkeys(COLORS, 0)
    for w in model.layers:
        for name, x in vars(w).items():
            if np.ndim(x) == 2 and not name.endswith("_pos"):
                counts[part_of(name)] += T * x.size
    counts[PROJECTIONS] += distance_operations(cfg, T)
    if model.weights.W_map is not None:
        counts[EMBEDDINGS] += T * model.weights.W_map.size
    return counts | dict.fromkeys(PRODUCTS, cfg.n_layers * T * n_keys * cfg.n_heads * cfg.d_head)


def distance_operations(cfg, T):
    """Multiply-adds of DeBERTa's terms of place: in each layer R rows of a table, and T tokens."""
    A, R = cfg.n_heads * cfg.d_head, cfg.n_distances
    return cfg.n_layers * len(cfg.pos_terms) * R * A * (cfg.d_model + T)


def _of_cross(model, T, S, reads):
    """The same of cross-attention; reads: keys and values of the source are computed now."""
    cfg = model.config
    counts = dict.fromkeys(COLORS, 0)
    for w in model.layers:
        of_queries = w.cross.W_Q.size + w.cross.W_O.size
        of_keys = w.cross.W_K.size + w.cross.W_V.size
        counts[PROJECTIONS] += T * of_queries + S * of_keys * reads
    return counts | dict.fromkeys(PRODUCTS, cfg.n_layers * T * S * cfg.n_heads * cfg.d_head)


def _in_layers(by_weights, by_pass):
    """Shares of attention, its products, its projections and the MLPs in the layers."""
    attention = (PROJECTIONS, *PRODUCTS)
    groups = {"attention": attention, "products": PRODUCTS, "mlps": (MLPS,)}
    result = {}
    for suffix, counts in (("", by_pass), ("_weights", by_weights)):
        whole = sum(counts[part] for part in (*attention, MLPS))
        for name, members in groups.items():
            result[f"{name}{suffix}"] = sum(counts[part] for part in members) / whole
    return result


def overtaken(model):
    """Lengths from which on attention needs as many multiply-adds as the MLPs, or more.

    Q K^T and A V need 2 T^2 H d in a layer, the MLP 2 T D M: equal at T = D M / (H d), which is M.
    With the projections, 4 T D H d, it is M - 2 D. Of an encoder-decoder all stacks count.
    """
    costs = multiply_adds(model, 1)  # what has weights grows with T, the products with T^2
    products = sum(costs[part] for part in PRODUCTS)
    alone = math.ceil(costs[MLPS] / products)
    whole = math.ceil((costs[MLPS] - costs[PROJECTIONS]) / products)
    return {"overtakes": alone, "overtakes_whole": max(whole, 1)}


def _steps(model, T, lengths):
    """Multiply-adds of the step that adds token number n: with a cache of those before, without."""

    def of_step(n):
        cached = multiply_adds(model, 1, past=n - 1, S=T)
        whole = multiply_adds(model, n, read_out=1, S=T)
        return sum(cached.values()), sum(whole.values())

    steps = np.array([of_step(int(n)) for n in lengths]).T
    cached, whole = of_step(T)
    output = multiply_adds(model, 1, past=T - 1, S=T)[OUTPUT]
    result = {"steps": steps, "step_cached": cached, "step_whole": whole}
    return result | {"step_output": output}


def place_operations(model, T):
    """Operations that tell a pass of T tokens where each token is; 0 where nothing does.

    A table adds D numbers to each token. A rotary layer turns each pair of features of queries and
    keys: 4 multiply-adds. A bias by distance adds one number to each score, hidden ones too, and so
    does each of DeBERTa's terms, which is computed as well. Of an encoder-decoder both stacks
    count, for a source of T tokens.
    """
    cfg = model.config
    n_scores = cfg.n_layers * cfg.n_heads * T * T
    turned = sum(len(rotary.frequencies) for rotary in cfg.rotary if rotary is not None)
    count = T * (cfg.d_embed or cfg.d_model) * bool(cfg.n_pos)
    count += T * (cfg.n_heads + cfg.n_kv) * 4 * turned
    count += n_scores * (bool(cfg.alibi or cfg.n_buckets) + len(cfg.pos_terms))
    count += distance_operations(cfg, T)
    if model.encoder is not None:
        count += place_operations(model.encoder, T)
    return count


def weights_listed(r):
    """The parts that have a share of the weights of at least 1%."""
    share = r["weights"] / r["weights"].sum()
    pairs = [(translated(str(part)), x) for part, x in zip(r["parts"], share) if x >= 0.01]
    return ", ".join(filled("{x:.0%} in {part}", part=part, x=x) for part, x in pairs)


def how(r):
    """What tells positions; nothing where nothing does."""
    names = [name for name in str(r["mechanisms"]).split(" + ") if name]
    ways = dict.fromkeys(translated(WHAT_TELLS[name]) for name in names)
    return translated(" and ").join(ways)


def operations_a_token(r):
    """How many operations tell the position of a token."""
    return r["place_operations"] / r["T"]


def times_without_cache(r):
    """How many times as many multiply-adds a step takes without a cache."""
    return r["step_whole"] / r["step_cached"]


ANY = "each token would then get the same vector in any order of the tokens"
STEPS = [
    " Decoding token {T:,} takes {step_cached:,} multiply-adds",
    When("step_output", " ({step_output:,} of them in the output)"),
    " with the keys and values of those before it",
    When("has_source", " and of the source"),
    " in a cache, {times_without_cache:.0f} times as many without: it is one step for each token, "
    "where training takes all in one pass.",
]
NO_STEPS = (
    " It has no steps of decoding: every token sees all others, so one more token changes them "
    "all, and a cache could keep nothing."
)


def plot(r):
    """Shares by part; multiply-adds for each token against the length; steps of decoding."""
    steps = [_draw_steps] if r["causal"] else []
    return row(_draw_in_layers, _draw_lengths, *steps, height=5)(r)


def _draw_in_layers(axes, r):
    """Two bars for every part: its share of the weights and of the multiply-adds."""
    y = np.arange(len(r["parts"]))
    for name, shift, color, label in (
        ("weights", -0.2, draw.GREY, f"of {r['total']:,} weights"),
        ("multiply_adds", 0.2, draw.BLUE, f"of the multiply-adds, {r['T']} tokens"),
    ):
        share = 100 * r[name] / r[name].sum()
        axes.barh(y + shift, share, 0.38, color=color, label=label)
        for place, x, n in zip(y + shift, share, r[name]):
            axes.text(x + 1, place, f"{x:.1f}" if n else "none", va="center", fontsize=10)
    axes.set_yticks(y, [draw.wrapped(str(part), 12) for part in r["parts"]])
    axes.invert_yaxis()
    axes.set(xlabel="share (%)", xlim=(0, 100))
    axes.legend(**draw.ABOVE | {"ncols": 1})


def _draw_lengths(axes, r):
    """Multiply-adds for each token of the parts that have some, against the length of the text."""
    for part, counts in zip(r["parts"], r["by_length"].T):
        if part not in (PROJECTIONS, MLPS, OUTPUT, SCORES) or not counts.any():
            continue
        times, label = (2, f"{SCORES} and {MIXING}") if part == SCORES else (1, part)
        axes.plot(r["lengths"], times * counts / r["lengths"], color=COLORS[part], label=label)
    if r["places_by_length"].any():
        per_token = r["places_by_length"] / r["lengths"]
        axes.plot(r["lengths"], per_token, color=draw.SKY, label=PLACES)
    _mark_lengths(axes, r)
    style = {"color": draw.VERMILION, "linewidth": 0.8, "linestyle": ":"}
    axes.axvline(r["overtakes"], label="Q Kᵀ and A V = MLPs", **style)
    axes.set_ylabel("multiply-adds for each token")
    axes.legend(**draw.ABOVE | {"handlelength": 1.2, "columnspacing": 0.8})


def _mark_lengths(axes, r):
    """Logarithmic axes, and the longest text that the model reads."""
    axes.axvline(r["n_ctx"], color="black", linewidth=0.8, linestyle="--", label="longest input")
    axes.set(xscale="log", yscale="log", xlabel="length of the text (tokens)")


def _draw_steps(axes, r):
    """Multiply-adds of the step that adds one token, against the tokens that there are then."""
    cached, whole = r["steps"]
    axes.plot(r["lengths"], whole, color=draw.VERMILION, label="one step, no cache")
    axes.plot(r["lengths"], cached, color=draw.BLUE, label="one step, with a cache")
    _mark_lengths(axes, r)
    axes.set_ylabel("multiply-adds of one step of decoding")
    axes.legend(**draw.ABOVE | {"ncols": 1})


register(
    parts,
    draw=plot,
    about="architecture",
    look="On the left, a part with weights and no multiply-adds is a table whose rows are looked "
    "up; one with multiply-adds and no weights is attention itself. In the middle, what has "
    "weights costs the same for each token however long the text is, while the products of "
    "attention grow with it: the dotted line is where they reach the MLPs. The light blue line, "
    "far below, is the cost of positions: all that a model without positions would save. Right of "
    "the dashed line the curves are what the formula would give, if the model could read so much. "
    "Hidden pairs of a causal model count: they are multiplied before they are hidden. A causal "
    "model has a third panel: one step of decoding, with a cache and without; in an "
    "encoder-decoder the first step reads the source too.",
    published="The title of the first paper on transformers says that attention is all you need "
    "(Vaswani et al. 2017); its own table counts MLPs, projections and norms too. Hirata's slides "
    "ask whether removing position embeddings could save computation.",
    answer=Asks(
        "share of attention in the multiply-adds of the layers, {T} tokens",
        value="{attention:.0%}, of their weights {attention_weights:.0%}",
        chance="",
        rule=Of("attention", null=HALF, enough=ALONE, margin=0),
    ),
    says=[
        "Of {total:,} weights, {weights_listed}.",
        When("shared", " The output's matrix is the word embedding, counted there."),
        " {SCORES}, {SOFTMAX} and {MIXING} have no weights. For {T} tokens",
        When("has_source", " and a source as long"),
        ", attention takes {attention:.0%} of the layers' multiply-adds, {products:.0%} in "
        "{SCORES} and {MIXING}, the MLPs {mlps:.0%}. {SCORES} and {MIXING} reach the MLPs at "
        "{overtakes:,} tokens, attention as a whole at {overtakes_whole:,}; this model reads at "
        "most {n_ctx:,}. ",
        When(
            "how",
            [
                "Encoding positions, by {how}, takes {operations_a_token:,.0f} operations a "
                "token, {place_share.percent:.2g}% of the number of multiply-adds: removing "
                "positions would save hardly any computation. What it changes is that ",
                When("mask_orders", "only the mask would then tell the order of the tokens", ANY),
                ".",
            ],
            "Nothing encodes positions here, so removing positions could save nothing.",
        ),
        When("causal", STEPS, NO_STEPS),
    ],
    numbers="""
        fact attention: share of attention, its projections included, in the layers' multiply-adds
        fact products: share of Q Kᵀ and A V in the layers' multiply-adds
        fact mlps: share of the MLPs in the layers' multiply-adds
        fact overtakes: tokens from which on Q Kᵀ and A V need as many multiply-adds as the MLPs
        fact overtakes_whole: tokens from which on attention needs as many multiply-adds as the MLPs
        fact attention_weights: share of attention in the layers' matrices and their biases
        fact place_operations: operations that encode positions in one text: additions of a table
            or of a bias, multiply-adds of turned queries and keys
        fact place_share: operations that encode positions, as a share of the number of
            multiply-adds
        fact step_cached: multiply-adds of decoding the last token, in the layers and in the output,
            with the tokens before it in a cache
        fact step_whole: multiply-adds of decoding the last token without a cache, in the layers
            and, for this token alone, in the output
        fact step_output: multiply-adds of decoding the last token in the output alone
        fact total: weights of the model, in numbers; a shared matrix counts once
        fact weights by parts: weights of each part, in numbers
        fact multiply_adds by parts: multiply-adds of each part, for one text
    """,
    sides=("both", "encoder"),
)

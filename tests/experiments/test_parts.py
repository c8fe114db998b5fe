"""What the parts of a model are, and what they cost: counted as the pass multiplies."""

import numpy as np
import pytest
import tiny
from counting import CAUSAL, MASKED, multiplications, record_products, sized
from outcomes import run, says, verdict
from safetensors.numpy import load_file

import minitx
from minitx.analysis.experiments import parts

EVERY = [*tiny.ONE_EACH, "bert-sequence", "gpt2-sequence", "bert-bare"]
EVERY += ["bert-token", "bert-next-sentence", "mpnet-choice", "albert-masked"]


@pytest.fixture
def products(monkeypatch):
    """Every product that is done, as (a, b), as long as the test runs."""
    return record_products(monkeypatch)


@pytest.mark.parametrize("T", [1, 9])
@pytest.mark.parametrize("variant", EVERY)
def test_multiply_adds_are_those_of_the_pass(variant, T, products):
    model = tiny.load(variant)
    x = minitx.forward(model, tiny.ids(model, 1, T))
    counts = parts.multiply_adds(model, T)
    of_layers = multiplications(products)
    assert of_layers == sum(counts.values()) - counts[parts.OUTPUT]
    if model.config.task_head:
        minitx.logits(model, x)
    assert multiplications(products) - of_layers == counts[parts.OUTPUT]
    assert parts.parts(model, tokens=T)["multiply_adds"].sum() == sum(counts.values())


@pytest.mark.parametrize("variant", ["bart-causal", "marian-separate", "t5-gated"])
def test_multiply_adds_of_an_encoder_decoder_are_those_of_its_pass(variant, products):
    """The first tokens with the source; one more token, over a cache that holds both."""
    model, T, S = tiny.load(variant), 5, 8
    tokens = tiny.ids(model, 1, T + 1)
    cache = minitx.Cache()
    for piece, past in ((tokens[:, :T], 0), (tokens[:, T:], T)):
        products.clear()
        source = {} if past else {"source": tiny.ids(model.encoder, 1, S)}
        minitx.logits(model, minitx.forward(model, piece, cache=cache, **source))
        counts = parts.multiply_adds(model, piece.shape[1], past, S=S)
        assert multiplications(products) == sum(counts.values())
    result = run("parts", model, tokens=T)
    assert "a source as long" in says("parts", result)
    assert "and of the source in a cache" in says("parts", result)


@pytest.mark.parametrize("variant", [MASKED, CAUSAL])
def test_multiply_adds_of_each_part_are_those_of_its_products(variant, products):
    """Told apart by the arrays that take part; the layers share their weights here."""
    model, T = sized(variant), 30
    trace_of_layers = minitx.forward(model, tiny.ids(model, 1, T))
    assert trace_of_layers.shape[1] == T
    counts = parts.multiply_adds(model, T)
    by_part = dict.fromkeys(counts, 0)
    for a, b in products:
        names = [n for n, W in vars(model.layers[0]).items() if np.ndim(W) == 2]
        used = [n for n in names if np.shares_memory(a, getattr(model.layers[0], n))]
        part = parts.part_of(used[0]) if used else None
        if part is None:
            part = parts.SCORES if b.shape[-1] == T else parts.MIXING
        by_part[part] += multiplications([(a, b)])
    assert by_part == counts | {parts.OUTPUT: 0}


@pytest.mark.parametrize("variant", [*EVERY, "bart-causal", "t5-gated"])
def test_weights_are_those_of_the_file_each_once(variant):
    model = tiny.load(variant)
    tensors = load_file(tiny.GOLDEN / variant / "model.safetensors")
    by_part = parts.weights_by_part(model)
    sizes = {}  # by what they hold: a tied matrix may be there twice
    for name, x in tensors.items():
        if name not in model.unused and x.dtype.kind == "f":
            sizes[x.tobytes()] = x.size
    assert sum(by_part.values()) == sum(sizes.values())
    for part in (parts.SCORES, parts.SOFTMAX, parts.MIXING):
        assert by_part[part] == 0


@pytest.mark.parametrize("past", [0, 20])
def test_a_step_costs_what_a_cache_leaves_to_do(past, products):
    model = sized(CAUSAL)
    tokens = tiny.ids(model, past + 1)
    cache = minitx.Cache()
    if past:
        minitx.forward(model, tokens[:past], cache=cache)
    products.clear()
    minitx.logits(model, minitx.forward(model, tokens[past:], cache=cache))
    assert multiplications(products) == sum(parts.multiply_adds(model, 1, past).values())
    products.clear()
    minitx.logits(model, minitx.forward(model, tokens)[:, -1:])
    r = run("parts", model, tokens=past + 1)
    assert multiplications(products) == r["step_whole"]
    assert r["step_cached"] == sum(parts.multiply_adds(model, 1, past).values())
    assert r["step_cached"] * (past + 1) == pytest.approx(r["step_whole"], rel=0.6)


def test_decoding_the_last_token_of_the_bundle_is_as_counted_by_hand():
    """4 layers of 12 D² weights and 2 · 256 D of attention, D 128; 1,024 pieces of the output."""
    r = run("parts", minitx.load("tiny-gpt2"))
    of_layers = 4 * (12 * 128**2 + 2 * 256 * 128)
    assert of_layers == 1_048_576
    assert r["step_output"] == 1024 * 128 == 131_072
    assert r["step_cached"] == of_layers + 131_072 == 1_179_648
    words = says("parts", r)
    assert "takes 1,179,648 multiply-adds (131,072 of them in the output)" in words
    assert r["place_operations"] == 256 * 128
    assert r["place_share"] == 256 * 128 / (256 * (4 * 12 * 128**2 + 131_072) + 8 * 256**2 * 128)
    assert "takes 128 operations a token, 0.011% of the number of multiply-adds" in words
    assert "only the mask would then tell the order" in words


BY_OTHER_WAYS = ["llama-grouped", "gpt_neox-parallel", "modernbert-masked", "bloom-three"]
BY_OTHER_WAYS += ["bart-causal", "marian-shared", "t5-gated"]


@pytest.mark.parametrize("variant", [*EVERY, *BY_OTHER_WAYS])
@pytest.mark.parametrize("T", [1, 9])
def test_what_tells_places_is_counted_as_a_pass_has_it(variant, T):
    """An addition for each number of the rows and for each score, 4 products for each pair."""
    model = tiny.load(variant)
    counts = []

    def hook(name, x, layer=None):
        stack = model.encoder if name.startswith("enc_") else model
        name = name.removeprefix("enc_")
        if name == "pos_embed":
            counts.append(x.size)
        if name == "scores" and stack.config.mechanisms[-1] in ("buckets", "alibi"):
            counts.append(x.size)
        if name == "pos_angle":
            counts.append(4 * x.size * (stack.config.n_heads + stack.config.n_kv))
        return x

    source = {"source": tiny.ids(model.encoder, 1, T)} if model.encoder is not None else {}
    minitx.forward(model, tiny.ids(model, 1, T), hook=hook, **source)
    assert parts.place_operations(model, T) == sum(counts) > 0


def test_without_positions_an_encoder_gives_each_token_its_vector_in_any_order(bundled):
    """What `parts` says of removing positions; a causal model has its mask."""
    tokens = np.array(bundled.tokenizer.encode("The dog ran after the cat."))
    order = np.random.default_rng(0).permutation(len(tokens))
    flat = {"pos_embed": np.zeros_like}
    for model, is_kept in ((bundled, True), (minitx.load("tiny-gpt2"), False)):
        x = minitx.run(model, tokens, edits=flat, keep=("resid_post", -1))["resid_post", -1][0]
        mixed = minitx.run(model, tokens[order], edits=flat, keep=("resid_post", -1))
        distance = np.abs(mixed["resid_post", -1][0] - x[order]).max()
        assert (distance < 1e-4) == is_kept  # float32: measured 4e-6
    assert "same vector in any order" in says("parts", run("parts", bundled))


@pytest.mark.parametrize("width, inner", [(60, 64), (60, 240), (60, 130)])
def test_attention_overtakes_the_mlp_where_the_formula_says(width, inner):
    model = sized(MASKED, D=width, H=5, M=inner)
    result = parts.parts(model)
    assert result["overtakes"] == inner
    assert result["overtakes_whole"] == max(inner - 2 * width, 1)
    for T, reached in ((inner, True), (inner - 1, False)):
        counts = parts.multiply_adds(model, T)
        assert (2 * counts[parts.SCORES] >= counts[parts.MLPS]) == reached


def test_an_encoder_has_no_steps(bundled, causal):
    result = run("parts", bundled)
    assert "step_cached" not in result
    assert "no steps of decoding" in says("parts", result)
    result = run("parts", causal)
    assert "in a cache" in says("parts", result)


def test_half_of_the_work_is_attention_where_the_bundle_reads_all_it_can(bundled):
    """D 128, M 512: 4 D^2 + 2 T D is 2 D M at T = 256."""
    result = run("parts", bundled)
    assert result["attention"] == 0.5 and verdict("parts", result) == "no"
    assert verdict("parts", result | {"attention": np.array(0.51)}) == "partly"
    short = run("parts", bundled, tokens=16)
    assert verdict("parts", short) == "no"  # measured 0.35
    w = bundled.layers[0]
    one_unit = {"W_in": w.W_in[:, :1], "b_in": w.b_in[:1], "W_out": w.W_out[:1]}
    narrow = tiny.with_weights(bundled, dict.fromkeys(range(4), one_unit))
    assert verdict("parts", run("parts", narrow)) == "yes"

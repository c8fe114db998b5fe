"""minitx against the reference library's own numbers: every golden variant, point and precision.

Bounds and measured distances (largest over all variants and points, texts alone and padded on
either side):

    float64   bound 1e-10; measured 6.1e-14, and 5.0e-12 with "gelu_fast", for which the library
              rounds sqrt(2/pi) to ten digits
    float32   bound 1e-4 of the largest value of that point; measured 3.0e-6 in single stacks, in
              encoder-decoders 5.5e-6 for logits and 6.5e-6 for the other points (T5, in which
              scores are large: they are not divided by the root of the width); the later decoders
              and DeBERTa 1e-5, measured 1.2e-6
"""

import numpy as np
import parity
import pytest
from safetensors.numpy import load_file

import minitx
from minitx import heads
from minitx.loading.families import FAMILIES

BOUND = {np.float64: 1e-10, np.float32: 1e-4}
LATER = 1e-5  # float32 of parity.DECODERS and parity.TERMS
# side of the padding, the id that fills it (`valid` alone decides, so any must do), and the side of
# a source's padding
PADDING = {
    "alone": (None, 0),
    "right": ("right", 0),
    "left": ("left", 7),
    "both": ("right", 9, "left"),
}
OF_PICTURES = [*(parity.GOLDEN / "images").glob("*-*")]
PAIRS = [name for name in parity.VARIANTS if "source" in parity.texts(name)[0]]


@pytest.fixture(scope="module", params=parity.VARIANTS)
def variant(request):
    return request.param


@pytest.mark.parametrize("dtype", BOUND, ids=["float64", "float32"])
def test_every_point_equals_the_reference(variant, dtype):
    model = minitx.load(parity.GOLDEN / variant, dtype=dtype)
    is_later = variant in parity.DECODERS + parity.TERMS
    allowed = LATER if is_later else BOUND[np.float32]
    texts = parity.texts(variant)
    too_far = {}
    for padding, how in PADDING.items():
        if padding == "both" and variant not in PAIRS:
            continue
        for key, (distance, size) in parity.distances(model, texts, *how).items():
            bound = allowed * size if dtype is np.float32 else BOUND[dtype]
            if not distance <= bound:  # so NaN is too far
                too_far[padding, key] = distance
    assert not too_far


def test_what_is_compared(variant):
    """Each variant compares its output and, of every layer, residual stream, attention, q, k, v."""
    model = minitx.load(parity.GOLDEN / variant)
    wanted = of_layers(model, "resid_pre", "pattern", "q", "k", "v") | {parity.output(model.config)}
    if model.encoder is not None:
        wanted |= of_layers(model, "cross_pattern", "cross_q", "cross_k", "cross_v")
        own = of_layers(model.encoder, "resid_pre", "pattern", "q", "k", "v")
        last = parity.our_name(f"enc_hidden.{model.encoder.config.n_layers}", model.config)
        wanted |= {(f"enc_{name}", layer) for name, layer in own} | {last}
    for text in parity.texts(variant):
        compared = {parity.our_name(key, model.config) for key in text if key not in parity.INPUTS}
        assert wanted <= compared
        assert ("logits" in compared) == (model.config.task_head is not None)


def of_layers(model, *names):
    """Points of all layers of a stack."""
    return {(name, layer.index) for name in names for layer in model.layers}


UNPATCHED = [
    name for name in parity.VARIANTS if (parity.GOLDEN / name / "unpatched.safetensors").is_file()
]


@pytest.mark.parametrize("variant", UNPATCHED)
def test_the_library_as_it_is_gives_the_same(variant):
    """It has norms, angles and softmax in float32, which the float64 reference has not.

    Measured 4.9e-6 of the largest value in T5, elsewhere 1.6e-6, both in float32.
    """
    model = minitx.load(parity.GOLDEN / variant)
    outputs = load_file(parity.GOLDEN / variant / "unpatched.safetensors")
    for i, text in enumerate(parity.texts(variant)):
        inputs = {name: text[name] for name in parity.INPUTS if name in text}
        trace = minitx.run(model, inputs.pop("tokens"), **inputs)
        expected = {key: x for key, x in outputs.items() if key.startswith(f"{i}.")}
        assert len(expected) > model.config.n_layers
        for key, x in expected.items():
            ours = trace[parity.our_name(key[2:], model.config)][0]
            assert abs(ours - x).max() <= BOUND[np.float32] * abs(x).max(), key


def test_all_points_are_compared_somewhere():
    """Scores apart, which the reference never gives; their softmax, the pattern, is compared.

    The stream between attention and MLP is compared in T5, whose norms stand before each part. No
    encoder of these families ends with a norm that takes a mean off.
    """
    seen = set()
    for variant in parity.VARIANTS:
        model = minitx.load(parity.GOLDEN / variant)
        for text in parity.texts(variant):
            points = [parity.our_name(name, model.config) for name in text]
            seen |= {point if isinstance(point, str) else point[0] for point in points}
    never = {"scores", "enc_scores", "cross_scores", "enc_ln_final_mean"}
    never |= {"head_out", "enc_head_out", "cross_head_out"}  # test_head_out.py: from z
    assert set(minitx.POINTS) - seen == never


def test_the_variants_asked_for_are_there():
    """Every family with and without head, activations, pad ids, scales, as the files say."""
    configs = [minitx.load(parity.GOLDEN / variant).config for variant in parity.VARIANTS]
    of_pictures = {minitx.load(folder).config.model_type for folder in OF_PICTURES}
    assert {c.model_type for c in configs if c.task_head} == {*FAMILIES} - of_pictures
    bare = {"bert", "roberta", "xlm-roberta", "camembert", "distilbert", "gpt2", "bart", "t5"}
    bare |= {"electra", "mpnet", "deberta", "deberta-v2", "albert", "modernbert"}
    assert {c.model_type for c in configs if not c.task_head} == bare
    acts = {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"}
    for family in ("bert", "gpt2"):
        assert acts <= {c.act for c in configs if c.model_type == family}
    assert {c.no_position_id for c in configs if c.model_type == "roberta"} == {0, 1, 3}
    heads_of_pictures = {"image", "taught", "projection"}  # test_images.py
    assert {c.task_head for c in configs} == {*heads.HEADS, None} - heads_of_pictures
    assert {c.scale_attn for c in configs} == {c.scale_by_layer for c in configs} == {True, False}


def test_each_head_of_each_family_has_a_variant():
    """Model types of one layout, such as RoBERTa's, are one family."""
    compared = set()
    for folder in [*(parity.GOLDEN / variant for variant in parity.VARIANTS), *OF_PICTURES]:
        config = minitx.load(folder).config
        compared.add((id(FAMILIES[config.model_type].heads), config.task_head))
    for model_type, family in FAMILIES.items():
        of_encoder = {} if family.encoder is None else family.encoder.heads
        for head in family.heads | of_encoder:
            assert (id(family.heads), head) in compared, (model_type, head)


def test_the_encoder_decoders_asked_for_are_there():
    """Scaled or not, tied or not, gated or not, stacks of different sizes, long texts."""
    loaded = {name: minitx.load(parity.GOLDEN / name) for name in PAIRS}
    configs = {name: model.config for name, model in loaded.items()}
    bart = [c for c in configs.values() if c.model_type == "bart"]
    assert {c.embed_scale for c in bart} == {1.0, 18**0.5} and {c.pad_id for c in bart} == {1, 57}
    assert any(c.n_layers != c.encoder.n_layers and c.n_heads != c.encoder.n_heads for c in bart)
    marian = [c for c in configs.values() if c.model_type == "marian"]
    assert {c.n_vocab - c.encoder.n_vocab for c in marian} == {0, -8}
    assert {c.d_model % 2 for c in marian} == {0, 1} and "swish" in {c.act for c in marian}
    t5 = {name: c for name, c in configs.items() if c.model_type == "t5"}
    assert {c.act for c in t5.values()} == {"relu", "gelu_new", "silu"}
    assert len({(c.gated, c.unembed_scale == 1) for c in t5.values()}) == 4
    for name, c in t5.items():
        assert c.d_head * c.n_heads != c.d_model
        assert max(len(text["source"]) for text in parity.texts(name)) > c.max_distance
    biases = {bool(model.weights.b_U is not None) for model in loaded.values()}
    assert biases == {True, False}

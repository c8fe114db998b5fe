"""minitx against the reference library's own numbers: every golden variant, point and precision.

Bounds and measured distances (largest over all variants and points, texts alone and padded on
either side):

    float64   bound 1e-10; measured 1.8e-14, and 5.0e-12 with "gelu_fast", for which the library
              rounds sqrt(2/pi) to ten digits
    float32   bound 1e-4 of the largest value of that point; measured 1.3e-6 for logits, 1.1e-6
              for the other points
"""

import sys

import numpy as np
import parity
import pytest

import minitx

BOUND = {np.float64: 1e-10, np.float32: 1e-4}
# side of the padding, and the id that fills it: `valid` alone decides, so any id must do
PADDING = {"alone": (None, 0), "right": ("right", 0), "left": ("left", 7)}


@pytest.fixture(scope="module", params=parity.VARIANTS)
def variant(request):
    return request.param


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("dtype", BOUND, ids=["float64", "float32"])
def test_every_point_equals_the_reference(variant, dtype, padding):
    model = minitx.load(parity.GOLDEN / variant, dtype=dtype)
    distances = parity.distances(model, parity.texts(variant), *PADDING[padding])
    too_far = {}
    for key, (distance, size) in distances.items():
        bound = BOUND[dtype] * size if dtype is np.float32 else BOUND[dtype]
        if not distance <= bound:  # so NaN is too far
            too_far[key] = distance
    assert not too_far


def test_what_is_compared(variant):
    """Each variant compares its output and, of every layer, residual stream, attention, q, k, v."""
    config = minitx.load(parity.GOLDEN / variant).config
    layers = range(config.n_layers)
    for text in parity.texts(variant):
        compared = {parity.our_name(key, config) for key in text if key not in parity.INPUTS}
        for name in ("resid_pre", "pattern", "q", "k", "v"):
            assert {(name, i) for i in layers} <= compared
        assert parity.output(config) in compared
        assert ("logits" in compared) == (config.task_head is not None)


def test_forward_and_logits_are_what_a_trace_sees(variant):
    """Without a hook, too, the last hidden state and the logits are the reference's."""
    model = minitx.load(parity.GOLDEN / variant, dtype=np.float64)
    for text in parity.texts(variant):
        inputs = {name: text[name] for name in parity.INPUTS[1:] if name in text}
        x = minitx.forward(model, text["tokens"], **inputs)
        assert abs(x[0] - text[f"hidden.{model.config.n_layers}"]).max() < BOUND[np.float64]
        if model.config.task_head:
            assert abs(minitx.logits(model, x)[0] - text["logits"]).max() < BOUND[np.float64]


def test_all_points_are_compared_somewhere():
    """Scores apart, which the reference never gives; their softmax, the pattern, is compared."""
    seen = set()
    for variant in parity.VARIANTS:
        model = minitx.load(parity.GOLDEN / variant)
        for text in parity.texts(variant):
            points = [parity.our_name(name, model.config) for name in text]
            seen |= {point if isinstance(point, str) else point[0] for point in points}
    names = {name for name, point in minitx.POINTS.items() if not name.startswith("enc_")}
    assert names - seen == {"scores", "resid_mid"}


def test_the_variants_asked_for_are_there():
    """Every family with and without head, activations, pad ids, scales, as the files say."""
    configs = [minitx.load(parity.GOLDEN / variant).config for variant in parity.VARIANTS]
    families = {"bert", "roberta", "xlm-roberta", "camembert", "distilbert", "gpt2"}
    expected = {(family, head) for family in families for head in (False, True)}
    assert {(c.model_type, bool(c.task_head)) for c in configs} == expected
    acts = {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"}
    for family in ("bert", "gpt2"):
        assert acts <= {c.act for c in configs if c.model_type == family}
    assert {c.no_position_id for c in configs if c.model_type == "roberta"} == {0, 1, 3}
    assert {c.task_head for c in configs} == {"masked", "causal", "sequence", None}
    assert {c.scale_attn for c in configs} == {c.scale_by_layer for c in configs} == {True, False}


def test_without_the_reference_library_parity_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit, match=r"reference library.*torch.*pip install '\.\[torch\]'"):
        parity.compare(parity.GOLDEN / "bert-bare", "any text")


def test_the_parity_table_has_a_row_for_every_variant(monkeypatch):
    monkeypatch.setattr(parity, "VARIANTS", parity.VARIANTS[:2])
    lines = parity.markdown().splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in parity.VARIANTS]
    distances = [[float(cell) for cell in line.strip(" |").split(" | ")[1:]] for line in lines]
    assert (np.array(distances) < [1e-10, 1e-4]).all()

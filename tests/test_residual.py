"""The split of the residual stream: exact on random models of every kind, and on one layer worked out by hand.

The random models have biases and norms that are not at their defaults. Distances are of float64 runs, relative to the
largest value compared: sums of some 40 terms in another order, measured at most 5e-15, bound 1e-10.
"""
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
from analysis_models import gpt2

import minitx
import weights
from analysis import corpus, draw, residual
from analysis.experiments import residual as experiment

VARIANTS = [*tiny.ONE_EACH, "gpt2-inverse-layer", "bert-sequence"]
BOTH = [False, True]


@pytest.fixture(params=VARIANTS)
def model(request):
    return tiny.load(request.param)


def split(model, points, **options):
    return list(residual.split(points, model.weights, model.layers, model.config.pre_norm, **options))


def recorded(model, side=None, **more):
    """Trace of one text of 9 tokens, or of three texts padded to 12."""
    rows = [tiny.ids(model, n, seed=n) for n in (9, 4, 7)]
    tokens, valid, _ = tiny.padded(rows if side else rows[:1], side or "right", width=12 if side else 9)
    return minitx.run(model, tokens, valid=valid, **more)


def distance(a, b):
    return abs(a - b).max() / abs(b).max()


@pytest.mark.parametrize("by_layer", BOTH)
@pytest.mark.parametrize("carried", BOTH)
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_the_parts_sum_to_the_stream(model, side, carried, by_layer):
    trace = recorded(model, side)
    found = split(model, trace.values, carried=carried, by_layer=by_layer)
    assert len(found) == model.config.n_layers * (1 + model.config.pre_norm) + 1 + model.config.pre_norm
    for stage in found:
        assert distance(sum(stage.parts.values()), trace[stage.point]) < 1e-10
        assert all(c.dtype == np.float64 for c in stage.parts.values())


def test_the_last_stage_is_what_the_model_returns(model):
    trace = recorded(model)
    last = split(model, trace.values)[-1]
    assert distance(sum(last.parts.values()), minitx.forward(model, trace.tokens)) < 1e-10


def test_the_parts_have_names(model):
    trace, last = recorded(model), model.config.n_layers - 1
    types = {"type"} if model.config.default_type is not None else set()
    assert set(split(model, trace.values)[-1].parts) == {"word", "position", "attention", "mlp", "bias"} | types
    apart = set(split(model, trace.values, by_layer=True, carried=True)[-1].parts)
    assert {("attention", 0), ("mlp", last), "carried"} < apart and not {"attention", "mlp"} & apart


def test_layers_apart_sum_to_layers_together(model):
    trace = recorded(model, "left")
    for one, apart in zip(split(model, trace.values), split(model, trace.values, by_layer=True)):
        for name in ("attention", "mlp"):
            layers = [c for key, c in apart.parts.items() if key[0] == name]
            assert bool(layers) == (name in one.parts)
            assert not layers or distance(sum(layers), one.parts[name]) < 1e-10


def test_token_types_of_a_text_are_a_part():
    model = tiny.load("bert-masked")
    trace = recorded(model, types=[[0, 0, 1, 1, 1, 0, 1, 0, 1]])
    rows = split(model, trace.values)[0].parts["type"][0]
    scale = trace["ln_embed_scale"][0, :, None]
    rows = rows / scale  # the same row before it was scaled
    assert distance(rows[[2, 3, 4, 6]], rows[8]) < 1e-10 and distance(rows[[0, 1, 5]], rows[7]) < 1e-10
    assert distance(rows[0], rows[8]) > 0.1


# what it means: the model itself, with everything else held still

def frozen_run(model, trace, also):
    """A run without positions in which the scale of every norm, and the points `also`, are those of the trace."""
    held = [key for key in trace.values if "scale" in str(key) or key[0] in also]
    return minitx.run(model, trace.tokens, valid=trace.valid,
                      edits={key: trace[key] for key in held} | {"pos_embed": np.zeros_like})


def test_position_is_what_is_lost_without_positions_and_all_else_as_it_was(model):
    trace = recorded(model, "right")
    without = frozen_run(model, trace, ("attn_out", "mlp_out"))
    for stage in split(model, trace.values):
        assert distance(trace[stage.point] - without[stage.point], stage.parts["position"]) < 1e-10


def test_carried_is_what_is_also_lost_where_attention_still_moves_what_there_is(model):
    trace = recorded(model, "right")
    without = frozen_run(model, trace, ("pattern", "mlp_out"))
    for stage in split(model, trace.values, carried=True):
        both = stage.parts["position"] + stage.parts.get("carried", 0)
        assert distance(trace[stage.point] - without[stage.point], both) < 1e-10
    assert abs(stage.parts["carried"]).max() > 0.01 * abs(both).max()


@pytest.mark.parametrize("carried", BOTH)
def test_twice_the_positions_are_twice_the_part(model, carried):
    """Scales frozen: a factor of 2 is exact in binary, so not a bit may differ."""
    points = recorded(model, "left").values
    double = points | {"pos_embed": 2 * points["pos_embed"]}
    for one, two in zip(split(model, points, carried=carried), split(model, double, carried=carried)):
        for name in one.parts:
            moves = name in ("position", "carried")
            if moves or not carried or name != "attention":  # attention is what remains of the recorded output
                assert np.array_equal(two.parts[name], (1 + moves) * one.parts[name])


def test_without_positions_there_is_no_part_of_theirs(model):
    trace = recorded(model, edits={"pos_embed": np.zeros_like})
    for stage in split(model, trace.values, carried=True):
        assert not stage.parts["position"].any() and not stage.parts.get("carried", np.zeros(1)).any()


# one layer, two tokens, width 2, by hand

def by_hand(pre_norm):
    """Points and weights of a layer that swaps its two tokens and multiplies by 3."""
    layer = SimpleNamespace(W_V=np.eye(2), W_O=3 * np.eye(2), b_O=np.array([1.0, 0]), b_out=np.array([0, 2.0]),
                            ln1_w=np.array([1.0, 10]), ln1_b=np.array([0.5, 0]), ln2_w=np.ones(2), ln2_b=np.zeros(2))
    ends = SimpleNamespace(ln_embed_w=None, ln_final_w=np.array([2.0, 1]), ln_final_b=np.array([0, 7.0]))
    points = {"embed": np.array([[[3.0, 1], [0, 2]]]), "pos_embed": np.array([[[1.0, -1], [4, 2]]]),
              ("pattern", 0): np.array([[[[0.0, 1], [1, 0]]]]), ("attn_out", 0): np.array([[[9.0, 9], [9, 9]]]),
              ("mlp_out", 0): np.array([[[1.0, 1], [1, 1]]]), ("ln1_scale", 0): np.array([[2.0, 3]]),
              ("ln2_scale", 0): np.array([[0.5, 1]]), "ln_final_scale": np.array([[10.0, 100]])}
    return list(residual.split(points, ends, [layer], pre_norm, carried=True))


def test_one_layer_by_hand_norm_after_each_part():
    """Token 0: (1, -1) is centred, times 2 and (1, 10) is (2, -20); its mean -9 off, halved: (5.5, -5.5).

    Token 1: (4, 2) - 3 = (1, -1), times 3 and (1, 10): (3, -30), + 13.5 = (16.5, -16.5). Attention brings each the
    other's position three times, (12, 6) and (3, -3); what is left of its (9, 9) without that and b_O is (-4, 3) and
    (5, 12). The biases: b_O (1, 0) becomes (1, -10), + ln1_b + b_out (1.5, -8); of token 1 (1.5, -15), (2, -13).
    """
    last = by_hand(pre_norm=False)[-1]
    assert last.point == ("resid_post", 0)
    assert last.parts["position"].tolist() == [[[5.5, -5.5], [16.5, -16.5]]]
    assert last.parts["carried"].tolist() == [[[16.5, -16.5], [49.5, -49.5]]]
    assert last.parts["attention"].tolist() == [[[-19.25, 19.25], [-57.75, 57.75]]]
    assert last.parts["bias"].tolist() == [[[2.375, -2.375], [7.5, -7.5]]]
    assert last.scale.tolist() == [[1, 3]] and last.gain.tolist() == [1, 10]


def test_one_layer_by_hand_norm_before_each_part():
    """The stream keeps (1, -1) and (4, 2); attention reads (2, -20) and (3, -30) and brings three times the other's.

    The final norm: (1, -1) times 10 and (2, 1) is (20, -10); (4, 2) - 3 times 100: (200, -100).
    """
    start, read, post, last = by_hand(pre_norm=True)
    assert (start.point, read.point, post.point, last.point) == (
        ("resid_pre", 0), ("ln1", 0), ("resid_post", 0), "ln_final")
    assert start.parts["position"].tolist() == post.parts["position"].tolist() == [[[1, -1], [4, 2]]]
    assert read.parts["position"].tolist() == [[[2, -20], [3, -30]]]
    assert post.parts["carried"].tolist() == [[[9, -90], [6, -60]]]
    assert last.parts["position"].tolist() == [[[20, -10], [200, -100]]]
    assert post.scale.tolist() == [[1, 1]] and last.scale.tolist() == [[10, 100]] and last.gain.tolist() == [2, 1]


# what is measured

def test_scale_and_gain_are_the_products_over_the_norms_passed(model):
    trace, w, L = recorded(model), model.weights, model.config.n_layers
    found = {stage.point: stage for stage in split(model, trace.values)}
    if model.config.pre_norm:  # the stream passes no norm, what is read passes one
        for i in range(L):
            assert (found["resid_post", i].scale == 1).all()
            assert np.array_equal(found["ln1", i].scale, trace["ln1_scale", i])
            assert np.array_equal(found["ln1", i].gain, model.layers[i].ln1_w)
        return
    scales = [trace["ln_embed_scale"], *(trace[f"ln{n}_scale", i] for i in range(L) for n in (1, 2))]
    gains = [w.ln_embed_w, *(getattr(layer, f"ln{n}_w") for layer in model.layers for n in (1, 2))]
    assert np.array_equal(found["resid_pre", 0].scale, scales[0])
    assert distance(found["resid_post", L - 1].scale, np.prod(scales, axis=0)) < 1e-12
    assert distance(found["resid_post", L - 1].gain, np.prod(gains, axis=0)) < 1e-12


def test_stages_are_where_the_split_stops(model):
    found = [stage.point for stage in split(model, recorded(model).values)]
    assert found == residual.stages(model.config.n_layers, model.config.pre_norm)


def test_points_are_read_when_their_turn_comes(model):
    """A split pulled along by a forward pass, of which only the present layer is held."""
    whole = recorded(model, "left")
    held, seen = {}, []
    walk = residual.split(held, model.weights, model.layers, model.config.pre_norm, carried=True)
    stops = residual.stages(model.config.n_layers, model.config.pre_norm)

    def tap(name, x, layer=None):
        held[key := name if layer is None else (name, layer)] = x
        if key in stops:
            seen.append(next(walk))
            held.clear()
        return x
    minitx.forward(model, whole.tokens, valid=whole.valid, at=tap)
    for one, other in zip(seen, split(model, whole.values, carried=True), strict=True):
        assert one.point == other.point
        assert all(np.array_equal(c, other.parts[name]) for name, c in one.parts.items())


def test_shares_sum_to_one_and_ratios_are_squared_lengths():
    parts = {"word": np.array([[[3.0, 0]]]), "position": np.array([[[1.0, 2]]]), "mlp": np.array([[[0.0, -5]]])}
    assert residual.shares(parts) == {"word": 12 / 25, "position": -2 / 25, "mlp": 15 / 25}
    assert residual.ratios(parts) == {"word": 9 / 25, "position": 5 / 25, "mlp": 25 / 25}
    drawn = np.random.default_rng(0).standard_normal((5, 2, 3, 7))
    total = sum(residual.shares(dict(enumerate(drawn))).values())
    assert abs(total - 1).max() < 1e-12  # measured 2e-16: sums of 7 terms in another order


def test_alike_is_one_for_the_same_wave_and_falls_with_what_is_mixed_in():
    t = np.arange(64)
    wave, other = (np.cos(2 * np.pi * f * t / 64)[:, None] * [1, 2] for f in (5, 9))
    assert residual.alike(wave, 3 * wave + 7) == pytest.approx(1, abs=1e-12)
    assert residual.alike(wave, other) == pytest.approx(0, abs=1e-12)
    assert residual.alike(wave, wave + 0.5 * other) == pytest.approx(0.8, abs=1e-12)  # 1 / (1 + 0.25)


# the experiment

@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A trained model that norms after each part, a random one that norms before, each with a tokenizer."""
    return {"after": minitx.load(weights.find("tiny-roberta")),
            "before": minitx.load(gpt2(tmp_path_factory.mktemp("gpt2")))}


@pytest.fixture(scope="module")
def found(models):
    return {(kind, carried): experiment.residual(models[kind], documents=2, tokens=30, carried=carried, tables=3)
            for kind in models for carried in (0, 1)}


@pytest.fixture(params=["after", "before"])
def kind(request):
    return request.param


def test_the_experiment_measures_the_split_of_a_whole_trace(models, kind, found):
    model, result = models[kind], found[kind, 1]
    documents, names = corpus.documents(model, "sample", 2, 30).first(2), result["parts"].tolist()
    walks = [split(model, minitx.run(model, document).values, carried=True) for document in documents]
    assert len(result["points"]) == len(walks[0])
    for i, stages in enumerate(zip(*walks)):
        means = [{name: x.mean() for name, x in residual.shares(stage.parts).items()} for stage in stages]
        expected = [np.mean([mean.get(name, 0) for mean in means], dtype=float) for name in names]
        assert abs(result["shares"][i] - expected).max() < 1e-12  # measured 1e-17: the same sums
        assert np.array_equal(result["scale_first"][i], stages[0].scale[0])


def test_the_experiments_shares_sum_to_one_with_every_table(kind, found):
    for carried in (0, 1):
        for name in ("shares", "shares_null"):
            assert abs(found[kind, carried][name].sum(axis=-1) - 1).max() < 1e-5  # float32: measured 1e-7
        assert found[kind, carried]["error"] < 1e-5  # float32: measured 2e-7


def test_what_is_carried_is_attention_where_it_is_not_told_apart(kind, found):
    together, apart = found[kind, 0], found[kind, 1]
    part = {name: apart["shares"][:, i] for i, name in enumerate(apart["parts"].tolist())}
    attention = together["shares"][:, together["parts"].tolist().index("attention")]
    assert abs(part["attention"] + part["carried"] - attention).max() < 1e-5  # float32: measured 4e-8
    assert "carried" not in together["parts"] and "carried" not in together


def test_the_table_as_its_own_null_changes_nothing_and_no_table_has_no_share(models, kind):
    model = models[kind]
    document = corpus.documents(model, "sample", 1, 30).first()[0]
    table = np.asarray(model.weights.W_pos[model.config.offset:][:30])

    def look(stage, other, _):
        return {"same": residual.shares(stage.parts)["position"], "null": residual.shares(other.parts)["position"]}
    shares = experiment.walk(model, document, np.array([table, 0 * table]), 1, look)  # [K 1 T], [K 2 T]
    assert np.array_equal(shares["null"][:, 0], shares["same"][:, 0]) and not shares["null"][:, 1].any()


def test_only_one_layers_points_are_held(models, kind, monkeypatch):
    model, held, original = models[kind], [], residual.split
    monkeypatch.setattr(residual, "split", lambda points, *rest, **more: held.append(points) or original(
        points, *rest, **more))
    document, table = corpus.documents(model, "sample", 1, 30).first()[0], np.zeros((1, 30, model.config.d_model))
    sizes = experiment.walk(model, document, table, 1, lambda *_: {"held": len(held[0])})["held"]
    assert max(sizes) <= 5  # pattern, attn_out, mlp_out, two scales


def test_only_the_null_depends_on_the_seed(models, kind, found):
    again, other = (experiment.residual(models[kind], documents=2, tokens=30, tables=3, seed=seed) for seed in (0, 1))
    moved = {name for name, x in found[kind, 1].items() if not np.array_equal(x, other[name])}
    assert all(np.array_equal(x, again[name]) for name, x in found[kind, 1].items())
    assert moved >= {"shares_null", "share_null", "kept_null", "spectra_shuffled"}
    assert not [name for name in moved if "null" not in name and "shuffled" not in name]


def test_a_stream_that_no_norm_has_touched_has_the_table_as_it_is(found):
    result = found["before", 1]
    assert result["points"][0] == "resid_pre.L0" and result["kept_at"][0] == pytest.approx(1, abs=1e-12)
    assert result["formula_at"][0] == pytest.approx(1, abs=1e-12)
    assert result["points"][result["read"]].tolist() == ["ln1.L0", "ln1.L1", "ln_final"]


def test_layers_are_counted_while_they_read_half_of_the_first_share():
    def counted(shares):
        table = np.array(shares)[:, None]
        r = {"read": np.arange(len(shares)), "parts": np.array(["position"]), "shares": table,
             "shares_null": table[:, None], "error_at": np.ones(len(shares)), "formula_at": np.ones(len(shares))}
        r |= {name: np.ones((len(shares), 4)) for name in ("spectra", "spectra_null")}
        return experiment._headline(r | {name: np.ones(len(shares)) for name in ("kept_at", "kept_at_null")})
    assert counted([0.4, 0.3, 0.2, 0.1, 0.3, 0.3])["layers_half"] == 3
    assert counted([0.4, 0.1, 0.4])["layers_half"] == 1
    assert counted([0.4, 0.5, 0.6])["layers_half"] == 2 and counted([0.4, 0.5, 0.6])["share"] == 0.6


def test_what_the_trained_bundle_shows(models):
    """The norms leave the wave of positions nearly whole, and the layers write against it."""
    result = experiment.residual(models["after"], documents=2, tables=3)
    position = result["parts"].tolist().index("position")
    least = result["shares_null"][1:, :, position].min(axis=1)
    assert (result["shares"][1:, position] < 0.5 * least).all()  # measured 0.24 to 0.25 of it
    assert result["kept"] > 0.85 and result["formula"] > 0.99    # measured 0.929 and 0.9993
    assert result["peak"] > 3 * result["peak_null"]              # measured 5.7 times


@pytest.mark.parametrize("options, message", [({"carried": 2}, "--carried is 2; wanted 0 to 1"),
                                              ({"tables": 0}, "--tables is 0; wanted 1 or more")])
def test_options_out_of_range(models, options, message):
    with pytest.raises(ValueError, match=message):
        experiment.residual(models["before"], **options)


@pytest.mark.parametrize("kind, carried", [("after", 0), ("before", 1)])
def test_it_is_drawn_and_told(kind, carried, found):
    result = {name: np.asarray(x) for name, x in found[kind, carried].items()}
    with draw.style():
        picture = draw.svg(experiment.plot(result))
    assert ("carried" in picture) == bool(carried) and "period (tokens)" in picture
    assert f"{result['share_first']:.1%} of what layer 0 reads" in experiment.says(result)


def test_says_compares_with_every_random_table():
    r = {"read": np.array([0]), "parts": np.array(["position"]), "shares_null": np.array([[[0.2], [0.3]]]),
         **dict.fromkeys(("share_first", "share_null", "kept", "kept_null", "peak", "peak_null"), 0.25)}
    for share, word in ((0.1, "less than any of 2"), (0.25, "like 2"), (0.4, "more than any of 2")):
        assert f"{word} random tables" in experiment.says(r | {"share": share})

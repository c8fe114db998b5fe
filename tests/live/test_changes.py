"""Changes as edits of a run: each beside edits written by hand, and beside the Python it gives."""

import doctest

import encoder_decoders
import numpy as np
import pytest

import minitx
from minitx import weights
from minitx.analysis.live import changes as changes_module
from minitx.analysis.live.changes import Changes
from minitx.analysis.live.mask import Mask
from minitx.analysis.maths import masks, moves
from minitx.analysis.measures import decoder_texts, mask_tap, position_parts

TEXT = "The dog ran after the cat, and sat."
# together they use every kind of change
SINGLE = [
    Changes(),
    Changes("zero"),
    Changes("shuffled", seed=3),
    Changes("shifted", shift=5),
    Changes(dial=2),
    Changes("shuffled", dial=-3),
    Changes("shifted", shift=4, dial=1),
    Changes(mask={"family": "window", "values": [2], "meaning": "scores"}),
    Changes(mask=Mask(null_seed=7), dial=1),
    Changes("zero", mask=Mask("alibi"), heads_off=[(1, 0), (1, 2), (0, 1)], layers_off=[1]),
    Changes(dial=1, mlps_off=[2, 0]),
]
OF_PAIRS = [
    Changes(stack="encoder"),
    Changes("shuffled", stack="encoder", heads_off=[(0, 1)], layers_off=[1]),
    Changes("zero", stack="decoder", layers_off=[1], mask=Mask("exponential", "scores", (4,))),
    Changes(stack="encoder", dial=2, mask=Mask("power", "weights_raw")),
    Changes("shuffled", stack="decoder", dial=-1),
    Changes(stack="cross", heads_off=[(0, 1)], layers_off=[1]),
    Changes(stack="encoder", mlps_off=[1]),
    Changes(stack="decoder", mlps_off=[0]),
]


@pytest.fixture
def tokens(bundled):
    return bundled.tokenizer.encode(TEXT)


@pytest.fixture(scope="module", params=encoder_decoders.MAKERS)
def pair(request, tmp_path_factory):
    """A random encoder-decoder of each family."""
    folder = tmp_path_factory.mktemp(request.param)
    return minitx.load(encoder_decoders.MAKERS[request.param](folder))


def differences(a, b):
    """Points of two traces that are not the same, bit by bit."""
    return [key for key in a if not np.array_equal(a[key], b[key])]


def executed(changes, model, **given):
    """The trace that the Python of some changes computes."""
    names = {}
    exec(changes.code(model, TEXT, **given), names)
    return names["trace"]


# by hand


def test_the_example_runs():
    failed, tried = doctest.testmod(changes_module)
    assert tried == 6 and not failed


def test_no_change_is_no_edit(bundled, tokens):
    assert not Changes() and Changes().edits(bundled, tokens) == {}
    assert Changes().says() == "" and Changes().as_json() == {}


def test_positions_shifted_are_those_of_a_text_that_stands_later(bundled, tokens):
    edits = Changes("shifted", shift=9).edits(bundled, tokens)
    by_hand = minitx.run(bundled, tokens, positions=9 + np.arange(len(tokens)))
    assert differences(minitx.run(bundled, tokens, edits=edits), by_hand) == []
    assert differences(minitx.run(bundled, tokens), by_hand)


def test_shuffled_positions_are_those_of_the_texts_own_tokens(bundled, tokens):
    plain = minitx.run(bundled, tokens, "pos_embed")["pos_embed"][0]
    edits = Changes("shuffled").edits(bundled, tokens)
    rows = minitx.run(bundled, tokens, "pos_embed", edits)["pos_embed"][0]
    assert (rows[[0, -1]] == plain[[0, -1]]).all()
    assert not np.array_equal(rows, plain)
    assert np.array_equal(np.sort(rows, axis=0), np.sort(plain, axis=0))


def test_the_dial_moves_keys_as_the_experiment_does(bundled, tokens):
    """Layer 0 reads positions exactly: keys through its own norm, queries as they were."""
    own = slice(1, len(tokens) - 1)
    passed = position_parts.of_document(bundled, tokens)
    (reading,) = position_parts.readings(bundled, passed, None, own, [0])
    moved = reading.put(moves.rolled(reading.positions, 3))
    edits = Changes(dial=3).edits(bundled, tokens)
    trace = minitx.run(bundled, tokens, ["q", "k"], edits)
    plain = minitx.run(bundled, tokens, ["q", "k"])
    keys = position_parts.keys(bundled, 0, moved)
    assert abs(trace["k", 0] - keys).max() < 1e-5  # measured 1.9e-06: another order of sums
    assert abs(plain["k", 0] - keys).max() > 0.5
    assert np.array_equal(trace["q", 0], plain["q", 0])
    assert not np.array_equal(trace["k", 3], plain["k", 3])


@pytest.mark.parametrize("meaning", masks.MEANINGS)
def test_a_mask_does_what_it_does_in_the_experiment(bundled, tokens, meaning):
    mask = Mask("linear", meaning, (0.25,))
    trace = minitx.run(bundled, tokens, "logits", Changes(mask=mask).edits(bundled, tokens))
    hook = mask_tap.tap(bundled, masks.family("linear", 0.25), meaning)
    x = minitx.forward(bundled, tokens, hook=hook)
    assert np.array_equal(trace["logits"], minitx.logits(bundled, x))
    is_null = np.array_equal(trace["logits"], minitx.run(bundled, tokens, "logits")["logits"])
    assert is_null == (meaning == "library-now-2d")  # values that are not 0 count as 1


def test_a_mask_hides_no_past_and_shows_no_future_of_a_causal_model(causal):
    tokens = causal.tokenizer.encode(TEXT)
    mask = Mask("window", "weights", (2,))
    edits = Changes(mask=mask).edits(causal, tokens)
    pattern = minitx.run(causal, tokens, "pattern", edits)["pattern", 0][0, 0]
    sees = np.tri(len(tokens), dtype=bool) & ~np.tri(len(tokens), k=-2, dtype=bool)
    assert ((pattern > 0) == sees).all()


def test_heads_and_layers_that_are_off_write_nothing(bundled, tokens):
    edits = Changes(heads_off=[(2, 1), (2, 3)], layers_off=[1]).edits(bundled, tokens)
    trace = minitx.run(bundled, tokens, edits=edits)
    is_on = trace["z", 2][0].any(axis=(1, 2))
    assert is_on.tolist() == [True, False, True, False]
    assert not trace["attn_out", 1].any() and not trace["mlp_out", 1].any()
    assert trace["attn_out", 0].any() and trace["mlp_out", 2].any()


def test_an_mlp_that_is_off_writes_nothing_and_its_attention_does(bundled, tokens):
    trace = minitx.run(bundled, tokens, edits=Changes(mlps_off=[1]).edits(bundled, tokens))
    assert not trace["mlp_out", 1].any()
    assert trace["attn_out", 1].any() and trace["mlp_out", 0].any()


def test_changes_of_one_stack_leave_the_other_as_it_was(pair):
    source = pair.encoder.tokenizer.encode(TEXT)
    said = decoder_texts.greedy(pair, source)
    plain = minitx.run(pair, said.inputs, source=source)
    for changes in OF_PAIRS[1:]:
        edits = changes.edits(pair, said.inputs, source)
        changed = minitx.run(pair, said.inputs, edits=edits, source=source)
        parts = {str(key[0])[:4] == "enc_" for key in differences(changed, plain)}
        assert parts == ({True, False} if changes.stack == "encoder" else {False})


def test_t5_moves_distances(tmp_path):
    model = minitx.load(encoder_decoders.t5(tmp_path / "t5"))
    source = model.encoder.tokenizer.encode(TEXT)
    plain = minitx.run(model, [1], "enc_pos_bias", source=source)["enc_pos_bias"]
    for changes, wanted in (
        (Changes("zero", stack="encoder"), 0 * plain),
        (Changes(dial=1, stack="encoder"), plain[..., [0, *range(2, 15), 1, 15]]),
    ):
        assert len(source) == 16  # the first and the last are special
        edits = changes.edits(model, [1], source)
        changed = minitx.run(model, [1], "enc_pos_bias", edits, source=source)["enc_pos_bias"]
        assert np.array_equal(changed, wanted)


# as Python


@pytest.mark.parametrize("changes", SINGLE, ids=lambda changes: changes.says() or "as is")
def test_the_python_of_a_single_stack_computes_the_same(bundled, tokens, changes):
    trace = minitx.run(bundled, tokens, edits=changes.edits(bundled, tokens))
    assert differences(executed(changes, bundled), trace) == []


@pytest.mark.parametrize("meaning", masks.MEANINGS)
@pytest.mark.parametrize("name", ["tiny-gpt2", "tiny-bert"])
def test_the_python_of_each_meaning_computes_the_same(name, meaning):
    model = minitx.load(name)
    tokens = model.tokenizer.encode(TEXT)
    changes = Changes("zero", mask=Mask("window", meaning, (3, 0.25)))
    if model.config.causal and meaning == "library-now":
        with pytest.raises(ValueError, match="shows a causal model what comes later"):
            changes.edits(model, tokens)
        return
    trace = minitx.run(model, tokens, edits=changes.edits(model, tokens))
    assert differences(executed(changes, model, name=name), trace) == []


@pytest.mark.parametrize("name", weights.zoo())
def test_the_python_of_each_mechanism_computes_the_same(name):
    model = minitx.load(name)
    tokens = model.tokenizer.encode(TEXT)
    kinds = ["off", "zero", "shuffled"] if model.config.mechanisms else []
    kinds += ["shifted"] * (model.weights.W_pos is not None)
    for kind in kinds:
        for dial in (0, 1):
            changes = Changes(kind, seed=6, dial=dial, shift=5 * (kind == "shifted"))
            trace = minitx.run(model, tokens, edits=changes.edits(model, tokens))
            assert differences(executed(changes, model, name=name), trace) == [], (kind, dial)


@pytest.mark.parametrize("changes", OF_PAIRS, ids=lambda changes: f"{changes.stack}: {changes}")
def test_the_python_of_an_encoder_decoder_computes_the_same(pair, changes):
    source = pair.encoder.tokenizer.encode(TEXT)
    for target, said in (
        (None, decoder_texts.greedy(pair, source)),
        ("It ran.", decoder_texts.forced(pair, source, "It ran.")),
    ):
        edits = changes.edits(pair, said.inputs, source)
        trace = minitx.run(pair, said.inputs, edits=edits, source=source)
        assert differences(executed(changes, pair, target=target), trace) == []


def test_hidden_tokens_and_hostile_text_stand_in_the_python(bundled):
    text = 'A "dog"\' ran\\ \u202eafter\n</script>'
    names, lines = {}, Changes().code(bundled, text, "tiny-roberta", hidden=(2, 4))
    exec(lines, names)
    tokens = bundled.tokenizer.encode(text)
    tokens[[2, 4]] = 4
    assert np.array_equal(names["trace"].tokens[0], tokens)
    assert "\u202e" not in lines and lines.count("\n") == 9


def test_one_change_takes_about_ten_lines(bundled):
    for changes in SINGLE:
        code = changes.code(bundled, TEXT, "tiny-roberta")
        statements = [line for line in code.splitlines() if line and "import" not in line]
        if ";" not in changes.says():
            assert len(statements) <= 9  # measured 9: a mask, or the dial


# the null, the curve, JSON


def test_the_null_shuffles_positions_and_deals_distances(bundled, tokens):
    changes = Changes("shifted", shift=4, mask=Mask("window", values=(2,)), heads_off=[(0, 1)])
    null = changes.null()
    assert (null.positions, null.shift, null.heads_off) == ("shuffled", 0, changes.heads_off)
    assert null.mask.null_seed == null.seed == changes.seed + 1
    pattern = minitx.run(bundled, tokens, "pattern", null.edits(bundled, tokens))["pattern", 0]
    n_seen = (pattern[0, 0] > 0).sum(axis=1)
    far = abs(np.subtract.outer(np.arange(len(tokens)), np.arange(len(tokens)))) > 1
    assert (n_seen <= 3).all() and (pattern[0, 0] > 0)[far].any()


def test_cross_attention_has_no_null():
    with pytest.raises(ValueError, match="reads no separate positions"):
        Changes(stack="cross", heads_off=[(0, 0)]).null()


def test_the_curve_is_the_masks_values_by_distance(bundled):
    assert Changes().curve(bundled, 5) is None
    linear = Changes(mask=Mask("linear", values=(0.1,))).curve(bundled, 5)
    assert linear == pytest.approx(np.array([[1, 0.775, 0.55, 0.325, 0.1]]))
    assert Changes(mask=Mask("alibi")).curve(bundled, 5).shape == (4, 5)


@pytest.mark.parametrize("changes", SINGLE + OF_PAIRS[1:], ids=repr)
def test_changes_go_through_json(changes):
    assert Changes.of(changes.as_json()) == changes
    assert hash(changes) == hash(Changes.of(changes.as_json()))
    assert bool(changes) == bool(changes.says())


# what is refused


@pytest.mark.parametrize(
    "values, match",
    [
        ({"positions": "away"}, "positions is 'away'; wanted one of 'on', 'zero'"),
        ({"positions": ["on"]}, "positions is"),
        ({"shift": 3}, "shift is 3, but positions is 'on'; wanted 'shifted'"),
        ({"positions": "shifted", "shift": -1}, "shift is -1; wanted a whole number from 0"),
        ({"dial": 1.5}, "dial is 1.5; wanted a whole number"),
        ({"dial": True}, "dial is True; wanted a whole number"),
        ({"dial": "1"}, "dial is '1'; wanted a whole number"),
        ({"seed": 2**40}, "seed is 1099511627776; wanted"),
        ({"stack": "both"}, "stack is 'both'; wanted one of '', 'encoder'"),
        ({"heads_off": [[0]]}, "heads_off has .0.; wanted pairs"),
        ({"heads_off": [[0, -1]]}, "a layer or head is -1"),
        ({"heads_off": "L0H0"}, "heads_off is 'L0H0'; wanted a list"),
        ({"layers_off": [0] * 5000}, "layers_off is .*; wanted a list of at most 4096"),
        ({"layers_off": [[1]]}, "a layer is .1.; wanted a whole number"),
        ({"mask": "linear"}, "mask is 'linear'; wanted a Mask"),
        ({"mask": {"famly": "linear"}}, "masks have no 'famly'; available: family, meaning"),
        ({"mask": {"family": "cosine"}}, "family of a mask is 'cosine'; wanted one of 'linear'"),
        ({"mask": {"family": ["linear"]}}, "family of a mask is"),
        ({"mask": {"meaning": "half"}}, "meaning of a mask is 'half'"),
        ({"mask": {"values": [2]}}, "low of linear is 2; wanted 0 to 1"),
        ({"mask": {"values": [float("nan")]}}, "wanted finite numbers"),
        ({"mask": {"values": [10**400]}}, "wanted finite numbers"),
        ({"mask": {"values": ["0.5"]}}, "wanted finite numbers"),
        ({"mask": {"values": [0, 0]}}, "2 parameters for linear; it has 1: low"),
        ({"mask": {"null_seed": -1}}, "null_seed is -1"),
        ({"heads": []}, "changes have no 'heads'; available: positions, shift"),
        (["zero"], "changes are .'zero'.; wanted an object"),
    ],
)
def test_a_change_that_is_none_is_refused(values, match):
    with pytest.raises(ValueError, match=match):
        Changes.of(values)


@pytest.mark.parametrize(
    "values, match",
    [
        ({"heads_off": [(9, 0)]}, "layer 9 is out of range; wanted 0 to 3"),
        ({"heads_off": [(0, 4)]}, "head 4 is out of range; wanted 0 to 3"),
        ({"layers_off": [4]}, "layer 4 is out of range; wanted 0 to 3"),
        ({"mlps_off": [0, 5]}, "layer 5 is out of range; wanted 0 to 3"),
        ({"positions": "shifted", "shift": 250}, "can stand at most 240 later among this model's"),
        ({"dial": 14}, "dial is 14; a text of 14 own tokens takes less than 14"),
        ({"dial": -14}, "takes less than 14"),
        ({"dial_down": 1}, "dial_down is of pictures, which have rows; this roberta reads text"),
        ({"stack": "encoder"}, "stack is 'encoder'; this roberta has ''"),
    ],
)
def test_a_change_that_a_model_cannot_take_is_refused(bundled, tokens, values, match):
    changes = Changes.of(values)
    for refuse in changes.check, changes.edits:
        with pytest.raises(ValueError, match=match):
            refuse(bundled, tokens)


def test_what_an_encoder_decoder_cannot_take_is_refused(tmp_path):
    model = minitx.load(encoder_decoders.t5(tmp_path / "t5"))
    source = model.encoder.tokenizer.encode(TEXT)
    for changes, match in (
        (Changes("zero"), "stack is ''; this t5 has 'encoder', 'decoder', 'cross'"),
        (Changes("zero", stack="cross"), "cross-attention reads no separate positions"),
        (Changes(dial=1, stack="cross"), "cross-attention reads no separate positions"),
        (Changes(mask=Mask(), stack="cross"), "between two texts there is no distance"),
        (Changes(mlps_off=[0], stack="cross"), "cross-attention has no MLPs"),
        (Changes("shifted", shift=1, stack="encoder"), "t5 reads only distances"),
    ):
        with pytest.raises(ValueError, match=match):
            changes.edits(model, [1], source)
